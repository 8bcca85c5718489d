# frozen_string_literal: true

require "openssl"

# Falcon of a source tree, which FALCON_SRC names, with preempted requests.
RSpec.describe "Falcon on Heddle" do
  # /computing ends after a request for /release, or as soon as there is a file `released`.
  application = <<~'RUBY'
    require "async/websocket/adapters/rack"
    released = false
    started = Queue.new
    parts = Queue.new
    run(lambda do |env|
      body = case env["PATH_INFO"]
             when "/computing" then started.push(true) && (nil until released || File.exist?("released")) || ["computed"]
             when "/started" then started.pop && ["started"]
             when "/release" then (released = true) && parts.push("second") && ["released"]
             when "/parts" then proc { |stream| [-> { "first " }, -> { parts.pop }].each { |part| stream.write(part.call) } && stream.close }
             when "/process" then [Process.pid.to_s]
             when "/echo"
               next Async::WebSocket::Adapters::Rack.open(env) { |peer| peer.write(peer.read) && peer.flush }
             else ["#{env["SERVER_PROTOCOL"]} #{Fiber.scheduler.class} #{env["rack.input"]&.read}"]
             end
      [200, { "content-type" => "text/plain" }, body]
    end)
  RUBY
  host = <<~RUBY
    require "falcon/endpoint"
    require "falcon/environment/rack"
    service "localhost" do
      include Falcon::Environment::Rack
      count 1
      endpoint { Falcon::Endpoint.parse(ENV.fetch("URL"), reuse_address: true) }
    end
  RUBY

  let(:tree) { ENV.fetch("FALCON_SRC") { skip "FALCON_SRC names no source tree of Falcon" } }
  let(:port) { TCPServer.open("localhost", 0) { |server| server.addr[1] } }
  let(:scheme) { "http" }
  let(:environment) do
    { "RUBYLIB" => [Processes::LIB, File.join(tree, "lib"), ENV.fetch("RUBYLIB", nil)].compact.join(":"),
      "HOME" => @folder, "BUNDLE_GEMFILE" => File.join(@folder, "none"), "URL" => "#{scheme}://localhost:#{port}" }
  end
  # The client runs on Async's own scheduler.
  let(:preamble) { <<~RUBY }
    require "async/http"
    require "async/websocket"
    require "openssl"
    def client(name, path = "")
      protocol = Async::HTTP::Protocol.const_get(name)
      ssl_context = OpenSSL::SSL::SSLContext.new.tap { |context| context.alpn_protocols = protocol.names }
      endpoint = Async::HTTP::Endpoint.parse(ENV.fetch("URL") + path, protocol:, ssl_context:)
      path.empty? ? Async::HTTP::Client.new(endpoint) : Async::WebSocket::Client.connect(endpoint) { |peer| yield peer }
    end
  RUBY

  around do |example|
    Dir.mktmpdir do |folder|
      @folder = folder
      File.write(File.join(folder, "config.ru"), application)
      File.write(File.join(folder, "falcon.rb"), host)
      example.run
    end
  end

  # Yields the server's process id and its log. Stops the server by TERM, unless the block has.
  def serving(command, *arguments)
    preempted = environment.merge("RUBYOPT" => "-rheddle/async", "HEDDLE_ASYNC" => "preempt")
    program = [RbConfig.ruby, File.join(tree, "bin", command), *arguments]
    with_command(*program, env: preempted, chdir: @folder) do |_, _, log, process|
      log.each_line.find { |line| line.include?("Controller started.") } || raise("#{command} has not started")
      Process.kill(:TERM, process.pid) unless yield(process.pid, log) == :terminated
      expect([process.value.success?, log.each_line.grep(/"severity":"error"/)]).to eq [true, []]
    end
  end

  def serve(*, &) = serving("falcon", "serve", "--count", "1", "--bind", environment.fetch("URL"), *, &)

  # What a client prints that asks for each page.
  def pages(protocol) = printed(<<~RUBY)
    Sync do
      client = client("#{protocol}")
      puts client.get("/").read, client.post("/", {}, ["body"]).read
      computing = Async { client.get("/computing").read }
      response = client.get("/parts")
      puts response.body.read, client.get("/release").read, response.read, computing.wait
      client("#{protocol}", "/echo") do |peer|
        peer.send_text("message")
        peer.flush
        puts peer.read.to_str
      end
      client.close
    end
  RUBY

  def expected(version)
    "#{version} Heddle::Scheduler \n#{version} Heddle::Scheduler body\nfirst \nreleased\nsecond\ncomputed\nmessage\n"
  end

  versions = { "HTTP1" => "HTTP/1.1", "HTTP2" => "HTTP/2" }
  %w[http https].product(versions.to_a).each do |scheme, (protocol, version)|
    context "with #{scheme} and #{version}" do
      let(:scheme) { scheme }

      it "serves pages, parts of a page, and a websocket, beside a request that computes" do
        old = Gem::Version.new(OpenSSL::VERSION) < Gem::Version.new("3.3")
        skip "Falcon's TLS needs the openssl gem 3.3, and this is #{OpenSSL::VERSION}" if scheme == "https" && old
        serve { expect(pages(protocol)).to eq expected(version) }
      end
    end
  end

  it "serves an application by falcon host" do
    serving("falcon-host") { expect(pages("HTTP1")).to eq expected("HTTP/1.1") }
  end

  it "begins a new worker at HUP, and the old one answers a request that computes" do
    serve("--graceful-stop", "60") do |server, log|
      before = process
      expect(answered_after(:HUP, server, log)).to eq "computed\n"
      log.each_line.find { |line| line.include?('"ready":true') }
      expect(process).not_to eq before
    end
  end

  it "ends at TERM, after it has answered a request that computes" do
    serve("--graceful-stop", "60") do |server, log|
      expect(answered_after(:TERM, server, log)).to eq "computed\n"
      :terminated
    end
  end

  def process = printed('Sync { client("HTTP1").then { |client| puts(client.get("/process").read) || client.close } }')

  # What a client gets whose request still computes when the signal comes, and until the worker is to end.
  def answered_after(signal, server, log)
    stopping = Thread.new do
      log.each_line.find { |line| line.include?("Stopping container...") }
      File.write(File.join(@folder, "released"), "")
    end
    answer = printed(<<~RUBY)
      Sync do
        client = client("HTTP1")
        computing = Async { client.get("/computing").read }
        client.get("/started").read
        Process.kill(:#{signal}, #{server})
        puts computing.wait
        client.close
      end
    RUBY
    stopping.join && answer
  end
end
