# frozen_string_literal: true

# `ruby streaming.rb PARAMETERS`: many connections. Each is sent a chunk every `pause` seconds, until the server closes
# it. Prints how many chunks were sent.
require "json"
require "socket"
require_relative "../run/clock"
require_relative "../run/machine"

Machine.raise_descriptors
parameters = JSON.parse(ARGV.fetch(0), symbolize_names: true)
port, connections, pause = parameters.values_at(:port, :connections, :pause)
sockets = Array.new(connections) { TCPSocket.new("127.0.0.1", port) }
sockets.each { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
chunk = "x" * 100
sent = 0

due = Clock.now
until sockets.empty?
  sockets.select! do |socket|
    socket.syswrite(chunk)
    sent += 1
  rescue Errno::ECONNRESET, Errno::EPIPE
    false
  end
  due += pause
  sleep([due - Clock.now, 0].max)
end
puts JSON.generate(client: "Ruby", operations: sent)
