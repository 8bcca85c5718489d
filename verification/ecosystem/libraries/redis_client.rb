# frozen_string_literal: true

Ecosystem.library "redis-client", server: :redis do
  def connect = RedisClient.new(port: server.port, timeout: Ecosystem::LIMIT)

  def wait(client, seconds) = client.blocking_call(seconds + Ecosystem::LIMIT, "BLPOP", "nothing", seconds)

  def usable?(client) = client.call("ECHO", "seven") == "seven"

  def works(client)
    pool = RedisClient.config(port: server.port, timeout: Ecosystem::LIMIT).new_pool(size: 2)
    client.pipelined { |pipeline| 3.times { |number| pipeline.call("RPUSH", "list", number) } }
    [pool.call("LRANGE", "list", 0, -1), client.multi { |transaction| transaction.call("INCRBY", "sum", 7) }]
  end
end
