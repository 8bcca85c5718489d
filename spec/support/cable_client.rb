# frozen_string_literal: true

require "json"
require "socket"

# A WebSocket client that speaks Action Cable's protocol. Blocks its thread until the server answers. For a program that
# has websocket-driver.
class CableClient
  # websocket-driver asks for it.
  attr_reader :url

  # @param port [Integer]
  def initialize(port)
    @url = "ws://127.0.0.1:#{port}/cable"
    @socket = TCPSocket.new("127.0.0.1", port)
    @received = []
    @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
    @driver.on(:message) { |message| @received << JSON.parse(message.data) }
    @driver.start
    next_of("welcome")
  end

  # websocket-driver calls it.
  def write(data) = @socket.write(data)

  def subscribe(channel)
    @identifier = JSON.generate(channel:)
    send_command("subscribe")
    next_of("confirm_subscription")
  end

  def perform(action, **data) = send_command("message", data: JSON.generate(action:, **data))

  # @return [Object] what was broadcast next
  def message = next_of(nil).fetch("message")

  def close = @socket.close

  private

  def send_command(command, **rest) = @driver.text(JSON.generate(command:, identifier: @identifier, **rest))

  def next_of(type)
    loop do
      found = @received.shift
      return found if found && found["type"] == type

      @driver.parse(@socket.readpartial(10_000)) unless found
    end
  end
end
