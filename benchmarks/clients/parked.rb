# frozen_string_literal: true

# `ruby parked.rb PARAMETERS`: opens idle connections, and closes them when its standard input is closed.
require "json"
require "socket"
require_relative "../run/machine"

Machine.raise_descriptors
parameters = JSON.parse(ARGV.fetch(0), symbolize_names: true)
sockets = Array.new(parameters.fetch(:connections)) { TCPSocket.new("127.0.0.1", parameters.fetch(:port)) }
$stdin.read
puts JSON.generate(client: "Ruby", operations: sockets.size)
