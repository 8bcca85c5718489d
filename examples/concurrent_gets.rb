# frozen_string_literal: true

# Several Net::HTTP gets at the same time, and one of the hosts is slow.
#
#   ruby -Ilib examples/concurrent_gets.rb [seconds that the slow host takes]
#
# It prints each answer as it comes in. The whole takes as long as the slowest host (2 s), not as long as all together:
# nothing but `Fiber.schedule` was added to what a program does that gets one page after another. The hosts are in this
# program too, on loopback ports, each with a delay of its own. Ctrl-C ends it early.

require "heddle"
require "net/http"
require "socket"

HOSTS = { "quick" => 0.1, "brisk" => 0.3, "easy" => 0.6, "lazy" => 0.9, "slow" => Float(ARGV.fetch(0, 2)) }.freeze

# Answers one request, after the delay.
def host(server, name, delay)
  client = server.accept
  nil until client.gets.chomp.empty?
  sleep delay
  body = "I am #{name}"
  client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
ensure
  client&.close
  server.close
end

def start_host(name, delay)
  server = TCPServer.new("127.0.0.1", 0)
  Fiber.schedule { host(server, name, delay) }
  URI("http://127.0.0.1:#{server.addr[1]}/")
end

def seconds_since(start)
  (Process.clock_gettime(Process::CLOCK_MONOTONIC) - start).round(2)
end

begin
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  Heddle.run do
    urls = HOSTS.map { |name, delay| start_host(name, delay) }

    urls.each do |url|
      Fiber.schedule do
        body = Net::HTTP.get(url)
        puts "After #{seconds_since(started)} s: #{body}"
        $stdout.flush
      end
    end
  end

  puts "All #{HOSTS.size} in #{seconds_since(started)} s. One after another: #{HOSTS.values.sum.round(2)} s."
rescue Interrupt
  puts "Bye."
end
