# frozen_string_literal: true

Ecosystem.library "net-http-persistent", requires: "net/http/persistent", server: :http do
  def connect = Net::HTTP::Persistent.new(name: "ecosystem")

  def wait(client, seconds) = client.request(URI("http://127.0.0.1:#{server.port}/sleep/#{seconds}")).value

  def usable?(client) = client.request(URI("http://127.0.0.1:#{server.port}/")).body == "hello"

  def works(client)
    %w[/ /chunks/3 /].map { |path| client.request(URI("http://127.0.0.1:#{server.port}#{path}")).body }
  end
end
