# frozen_string_literal: true

# `ruby paced.rb PARAMETERS`: one connection that sends a byte, waits for it to come back, pauses and repeats until the
# server closes it. Prints every round trip in milliseconds but the first, which ended before the CPU-bound fibers
# started. A byte that was never answered doesn't count.
require "json"
require "socket"
require_relative "../run/clock"

parameters = JSON.parse(ARGV.fetch(0), symbolize_names: true)
socket = TCPSocket.new("127.0.0.1", parameters.fetch(:port))
socket.setsockopt(:TCP, :NODELAY, true)
round_trips = []

begin
  loop do
    before = Clock.now
    socket.syswrite("x")
    socket.sysread(1)
    round_trips << ((Clock.now - before) * 1000).round(3)
    sleep(parameters.fetch(:pause))
  end
rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
  puts JSON.generate(client: "Ruby", operations: round_trips.size, round_trips: round_trips.drop(1))
end
