# frozen_string_literal: true

require "net/http"
require "stringio"

Ecosystem.library "Net::HTTP", requires: "net/http", version: -> { Net::HTTP::VERSION }, server: :http do
  def connect = Net::HTTP.start("127.0.0.1", server.port, max_retries: 0)

  def wait(client, seconds) = client.get("/sleep/#{seconds}").value

  def usable?(client)
    client.start unless client.started?
    client.get("/").body == "hello"
  end

  def works(client)
    chunks = +""
    client.request(Net::HTTP::Get.new("/chunks/3")) { |response| response.read_body { |chunk| chunks << chunk } }
    upload = Net::HTTP::Post.new("/echo", "transfer-encoding" => "chunked")
    upload.body_stream = StringIO.new("x" * 100_000)
    [chunks, client.request(upload).body.size, Array.new(3) { client.get("/").body }]
  end
end

Ecosystem.library "Net::HTTP, TLS", requires: "net/http", version: -> { Net::HTTP::VERSION }, server: :tls do
  def connect
    Net::HTTP.start("127.0.0.1", server.port, use_ssl: true, ca_file: File.join(server.folder, "certificate.pem"),
                                              max_retries: 0)
  end

  def wait(client, seconds) = client.get("/sleep/#{seconds}").value

  def usable?(client)
    client.start unless client.started?
    client.get("/").body == "hello"
  end

  def works(client)
    upload = Net::HTTP::Post.new("/echo", "transfer-encoding" => "chunked")
    upload.body_stream = StringIO.new("x" * 100_000)
    [client.get("/chunks/3").body, client.request(upload).body.size, Array.new(3) { client.get("/").body }]
  end
end
