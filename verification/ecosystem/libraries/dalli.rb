# frozen_string_literal: true

Ecosystem.library "dalli", server: :memcached do
  def connect = Dalli::Client.new("127.0.0.1:#{server.port}", socket_timeout: 30, socket_max_failures: 0)

  # No command of memcached waits, so the server is stopped for the time.
  def wait(client, seconds)
    server.pause(seconds)
    client.get("seven")
  end

  def usable?(client)
    server.resume
    client.set("seven", 7)
    client.get("seven") == 7
  end

  def works(client)
    client.set_multi({ "a" => 1, "b" => [2] }) if client.respond_to?(:set_multi)
    [client.set("c", "x" * 100_000) && true, client.get_multi("a", "b"), client.get("c").size,
     client.incr("n", 1, nil, 5), client.delete("a")]
  end
end
