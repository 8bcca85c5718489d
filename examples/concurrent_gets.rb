# frozen_string_literal: true

# Several concurrent Net::HTTP requests, one of them to a slow host.
#
#   ruby -Ilib examples/concurrent_gets.rb [delay of the slow host in seconds]
#
# It prints each answer as it arrives. All requests together take as long as the slowest host (2 s), not the sum of the
# delays. `Fiber.schedule` is all that differs from a program that gets one page after another. The hosts are servers in
# this program, on loopback ports, each with its own delay. Ctrl-C ends the program early.

require "heddle"
require "net/http"
require "socket"
require_relative "support/http_connection"

HOSTS = { "slow" => Float(ARGV.fetch(0, 2)), "lazy" => 0.9, "easy" => 0.6, "brisk" => 0.3, "quick" => 0.1 }.freeze

# Answers one request, after the delay.
def host(server, name, delay)
  HttpConnection.new(server.accept, keep_alive: false).serve do
    sleep delay
    [200, "I am #{name}"]
  end
ensure
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
