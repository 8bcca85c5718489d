# frozen_string_literal: true

Ecosystem.library "faraday", server: :http do
  def connect = Faraday.new("http://127.0.0.1:#{server.port}")

  def wait(client, seconds) = client.get("/sleep/#{seconds}").body

  def usable?(client) = client.get("/").body == "hello"

  def works(client)
    [client.get("/chunks/3").body, client.post("/echo", "x" * 100_000).body.size, client.get("/").body]
  end
end
