# frozen_string_literal: true

# A WebSocket server: websocket.rb PORT. It answers a text "0.2" after that many seconds.

require "socket"
require "websocket/driver"

# What the driver writes to.
Connection = Struct.new(:socket) do
  def write(data) = socket.write(data)
end

server = TCPServer.new("127.0.0.1", Integer(ARGV.fetch(0)))
loop do
  Thread.new(server.accept) do |socket|
    driver = WebSocket::Driver.server(Connection.new(socket))
    driver.on(:connect) { driver.start }
    driver.on(:message) { |message| sleep(Float(message.data)) && driver.text("waited #{message.data}") }
    loop { driver.parse(socket.readpartial(4096)) }
  rescue IOError, SystemCallError
    socket.close
  end
end
