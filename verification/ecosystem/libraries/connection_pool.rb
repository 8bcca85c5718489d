# frozen_string_literal: true

Ecosystem.library "connection_pool", requires: %w[connection_pool redis-client], server: :redis do
  def connect
    ConnectionPool.new(size: 2, timeout: Ecosystem::LIMIT) { RedisClient.new(port: server.port, timeout: Ecosystem::LIMIT) }
  end

  def wait(client, seconds)
    client.with { |redis| redis.blocking_call(seconds + Ecosystem::LIMIT, "BLPOP", "nothing", seconds) }
  end

  def usable?(client) = client.with { |redis| redis.call("ECHO", "seven") == "seven" }

  # Ten tasks share two connections, and one task takes one twice.
  def works(client)
    counts = Queue.new
    tasks = Array.new(10) { task { client.with { |redis| counts.push(redis.call("INCR", "n")) } } }
    tasks.each(&:call)
    nested = client.with { |outer| client.with { |inner| outer.equal?(inner) } }
    [Array.new(10) { counts.pop }.sum, nested, client.available]
  end

  def task(&block)
    return Thread.new(&block).method(:join) unless defined?(Heddle)

    done = Queue.new
    Fiber.schedule { block.call && done.push(true) }
    done.method(:pop)
  end
end
