# frozen_string_literal: true

# Sends one message back and forth over two Queues, `@round_trips` times, so that every `pop` finds its Queue empty.
module BackAndForth
  private

  # Sends the message and waits until it is back.
  def ping(there, back, tally)
    right = 0
    number = 0
    while number < @round_trips
      there.push(number)
      right += 1 if back.pop == number
      tally.first_done if number.zero?
      number += 1
    end
    tally.finished(right)
  end

  # Sends the message back. Yields after the first time, if there is a block.
  def pong(there, back)
    left = @round_trips
    while left.positive?
      back.push(there.pop)
      yield if block_given? && left == @round_trips
      left -= 1
    end
  end
end
