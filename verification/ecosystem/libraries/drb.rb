# frozen_string_literal: true

Ecosystem.library "DRb", requires: "drb", version: -> { DRb::VERSION }, server: :drb do
  def connect = DRbObject.new_with_uri("druby://127.0.0.1:#{server.port}")

  def wait(client, seconds) = client.wait(seconds)

  def usable?(client) = client.add(3, 4) == 7

  def works(client)
    DRb.start_service("druby://127.0.0.1:0")
    items = []
    client.each_of([1, 2, 3]) { |item| items << item }
    [items, client.add([1], [2])]
  end
end
