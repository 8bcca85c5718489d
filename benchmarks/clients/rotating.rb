# frozen_string_literal: true

# `ruby rotating.rb PARAMETERS`: many connections, of which `window` wait for an answer at any time, in rotation. The
# client reads the answer of the connection that has waited longest, and sends the next request on the connection after
# the newest. It needs no select, so a round trip costs the client the same with 10 connections and with 10,000.
#
# An answer that comes early waits in its socket until the rotation reaches it; that is the same for all contestants.
require "json"
require "socket"
require_relative "../run/clock"
require_relative "../run/machine"
require_relative "../report/statistics"

Machine.raise_descriptors
parameters = JSON.parse(ARGV.fetch(0), symbolize_names: true)
port, request, connections, answer_size, seconds, window =
  parameters.values_at(:port, :request, :connections, :answer_size, :seconds, :window)

sockets = Array.new(connections) { TCPSocket.new("127.0.0.1", port) }
sent = Array.new(connections, 0.0)
latencies = []

# One round trip on each connection before the measurement, to warm up.
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
