# frozen_string_literal: true

# `ruby turning.rb PARAMETERS`: many connections, of which `window` wait for an answer at any time, in turn: read the
# answer of the one that has waited longest, send the next request on the one after the newest. No select is needed,
# so the price of a round trip here is the same for 10 connections and for 10,000.
#
# An answer that came early waits here until its turn to be read; all contestants meet with the same.
require "json"
require "socket"
require_relative "../support/clock"
require_relative "../support/machine"
require_relative "../support/statistics"

Machine.raise_descriptors
parameters = JSON.parse(ARGV.fetch(0), symbolize_names: true)
port, request, connections, answer_size, seconds, window =
  parameters.values_at(:port, :request, :connections, :answer_size, :seconds, :window)

sockets = Array.new(connections) { TCPSocket.new("127.0.0.1", port) }
sent = Array.new(connections, 0.0)
latencies = []

# Everybody once before the time begins: what is first of its kind is dear.
sockets.each { |socket| socket.write(request) }
buffer = +""
sockets.each { |socket| socket.read(answer_size, buffer) }

ask = lambda do |number|
  sent[number] = Clock.now
  sockets[number].syswrite(request)
end
answer = lambda do |number|
  left = answer_size
  left -= sockets[number].sysread(left, buffer).bytesize while left.positive?
  latencies << (Clock.now - sent[number])
end

cpu = Clock.cpu
started = Clock.now
window.times(&ask)
oldest = 0
while Clock.now < started + seconds
  answer.call(oldest)
  ask.call((oldest + window) % connections)
  oldest = (oldest + 1) % connections
end
window.times { |number| answer.call((oldest + number) % connections) }
stopped = Clock.now

latencies.sort!
percentiles = { p50_ms: 50, p90_ms: 90, p99_ms: 99, max_ms: 100 }
puts JSON.generate(client: "Ruby", operations: latencies.size, warm_up: connections, errors: 0,
                   seconds: stopped - started, cpu_seconds: Clock.cpu - cpu,
                   **percentiles.transform_values { |percent| Statistics.percentile(latencies, percent) * 1000 })
