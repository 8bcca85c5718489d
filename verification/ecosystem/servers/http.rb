# frozen_string_literal: true

# A Puma with 64 threads: http.rb PORT [CERTIFICATE KEY]
# /sleep/0.2 answers after that time, /chunks/3 in that many chunks, anything else at once.

require "puma"
require "puma/configuration"
require "puma/launcher"

application = lambda do |environment|
  _, name, argument = environment["PATH_INFO"].split("/")
  case name
  when "sleep" then sleep(Float(argument))
  when "chunks"
    chunks = Enumerator.new do |yielder|
      Integer(argument).times do |number|
        sleep(0.01) && (yielder << "chunk #{number};")
      end
    end
    return [200, { "content-type" => "text/plain" }, chunks]
  when "echo" then return [200, { "content-type" => "text/plain" }, [environment["rack.input"].read]]
  end
  [200, { "content-type" => "text/plain" }, ["hello"]]
end

port, certificate, key = ARGV
configuration = Puma::Configuration.new do |config|
  address = "127.0.0.1:#{port}"
  config.bind(certificate ? "ssl://#{address}?key=#{key}&cert=#{certificate}&verify_mode=none" : "tcp://#{address}")
  config.threads(64, 64)
  config.app(application)
  config.persistent_timeout(60)
end
Puma::Launcher.new(configuration).run
