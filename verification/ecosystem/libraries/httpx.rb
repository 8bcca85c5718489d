# frozen_string_literal: true

Ecosystem.library "httpx", server: :http, remark: "with `plugin(:persistent)`, a session per fiber" do
  def connect = HTTPX.with(origin: "http://127.0.0.1:#{server.port}")

  def wait(client, seconds) = client.get("/sleep/#{seconds}").raise_for_status

  def usable?(client) = client.get("/").raise_for_status.to_s == "hello"

  def works(client) = [*client.get("/", "/chunks/3").map(&:to_s), client.post("/echo", body: "x" * 100_000).to_s.size]
end
