# frozen_string_literal: true

Ecosystem.library "redis", server: :redis do
  def connect = Redis.new(port: server.port, timeout: Ecosystem::LIMIT, reconnect_attempts: 0)

  def wait(client, seconds) = client.blpop("nothing", timeout: seconds)

  def usable?(client) = client.echo("seven") == "seven"

  def works(client)
    client.pipelined { |pipeline| 3.times { |number| pipeline.rpush("list", number) } }
    client.multi { |transaction| transaction.incrby("sum", 7) }
    [client.lrange("list", 0, -1), client.get("sum"), client.hset("hash", "a", 1), client.hgetall("hash")]
  end
end
