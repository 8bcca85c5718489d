# frozen_string_literal: true

# A shop that asks another service for its prices, which has become slow. The page says so. It needs the gem puma.
#
#   ruby -Ilib examples/slow/slow_upstream.rb

require_relative "support/shop"
require "socket"

listener = TCPServer.new("127.0.0.1", 0)
PRICES = URI("http://127.0.0.1:#{listener.local_address.ip_port}/")

# The service. It is a process of its own, so that the shop's process does not make it slow.
Shop.beside do
  loop do
    Thread.new(listener.accept) do |socket|
      nil until socket.gets.chomp.empty?
      # The fault.
      sleep 1.2
      socket.write("HTTP/1.0 200 OK\r\n\r\n42")
      socket.close
    end
  end
end

Shop.open("/prices/#" => 15, "/products/#" => 10) do |path|
  path.start_with?("/prices") ? Net::HTTP.get(PRICES) : "A loom."
end
