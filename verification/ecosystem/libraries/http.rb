# frozen_string_literal: true

Ecosystem.library "http", server: :http do
  def connect = HTTP.persistent("http://127.0.0.1:#{server.port}")

  def wait(client, seconds) = client.get("/sleep/#{seconds}").to_s

  def usable?(client) = client.get("/").to_s == "hello"

  def works(client)
    [client.get("/chunks/3").to_s, client.post("/echo", body: "x" * 100_000).to_s.size, client.get("/").to_s]
  end
end
