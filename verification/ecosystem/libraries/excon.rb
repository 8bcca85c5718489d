# frozen_string_literal: true

Ecosystem.library "excon", server: :http, remark: "a connection per fiber" do
  def connect = Excon.new("http://127.0.0.1:#{server.port}", persistent: true)

  def wait(client, seconds) = client.get(path: "/sleep/#{seconds}").body

  def usable?(client) = client.get(path: "/").body == "hello"

  def works(client)
    [client.get(path: "/chunks/3").body, client.post(path: "/echo", body: "x" * 100_000).body.size]
  end
end
