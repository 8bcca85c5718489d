# frozen_string_literal: true

Ecosystem.library "bunny", server: :rabbitmq do
  def connect
    Bunny.new(host: "127.0.0.1", port: server.port, automatically_recover: false, continuation_timeout: 30_000)
         .start.create_channel
  end

  # A message that the queue returns after its time to live.
  def wait(channel, seconds)
    answers = channel.queue("", exclusive: true)
    arrived = Queue.new
    answers.subscribe { |_delivery, _properties, body| arrived.push(body) }
    delay = channel.queue("", exclusive: true, arguments: { "x-message-ttl" => (seconds * 1000).to_i,
                                                            "x-dead-letter-exchange" => "",
                                                            "x-dead-letter-routing-key" => answers.name })
    delay.publish("late")
    until (message = arrived.pop(timeout: 0.3))
      # After a failure of the network it is neither open nor closed.
      raise IOError, "the connection is lost" unless channel.connection.open?
    end
    message
  end

  def usable?(channel)
    queue = channel.queue("", exclusive: true)
    queue.publish("seven")
    queue.message_count.between?(0, 1)
  end

  def works(channel)
    channel.confirm_select
    queue = channel.queue("", exclusive: true)
    3.times { |number| queue.publish("message #{number}") }
    [channel.wait_for_confirms, Array.new(3) { queue.pop.last }, queue.message_count]
  end
end
