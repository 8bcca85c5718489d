# frozen_string_literal: true

require "json"
require "socket"

# A WebSocket client that speaks Action Cable's protocol. Blocks its thread until the server answers. For a program that
# has websocket-driver.
class CableClient
  # websocket-driver asks for it.
  attr_reader :url

  # @param port [Integer]
  # @param path [String]
  # @param await_welcome [Boolean] whether the client waits, as it should, for the server to welcome it
  def initialize(port, path = "/cable", await_welcome: true)
    @url = "ws://127.0.0.1:#{port}#{path}"
    @socket = TCPSocket.new("127.0.0.1", port)
    @received = []
    @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
    @driver.on(:message) { |message| @received << JSON.parse(message.data) }
    @opened = false
    @driver.on(:open) { @opened = true }
    @driver.start
    receive until @opened
    next_of("welcome") if await_welcome
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

      receive unless found
    end
  end

  def receive = @driver.parse(@socket.readpartial(10_000))
end
