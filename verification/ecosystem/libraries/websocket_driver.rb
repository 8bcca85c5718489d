# frozen_string_literal: true

require "socket"

Ecosystem.library "websocket-driver", requires: "websocket/driver", server: :websocket do
  self::Client = Struct.new(:socket, :url, :driver, :messages) do
    def write(data) = socket.write(data)

    def ask(text) = driver.text(text) && answer

    def answer
      driver.parse(socket.readpartial(4096)) while messages.empty?
      messages.shift
    end
  end
  def connect
    socket = TCPSocket.new("127.0.0.1", server.port)
    self.class::Client.new(socket, "ws://127.0.0.1:#{server.port}/", nil, []).tap do |client|
      client.driver = WebSocket::Driver.client(client)
      client.driver.on(:message) { |message| client.messages << message.data }
      opened = false
      client.driver.on(:open) { opened = true }
      client.driver.start
      client.driver.parse(socket.readpartial(4096)) until opened
    end
  end

  def wait(client, seconds) = client.ask(seconds.to_s)

  # After a wait that was ended, its answer comes first.
  def usable?(client)
    answer = client.ask("0.001")
    answer = client.answer until answer == "waited 0.001"
    true
  end

  def works(client) = Array.new(3) { |number| client.ask("0.00#{number}") }
end
