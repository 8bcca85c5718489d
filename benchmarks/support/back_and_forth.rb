# frozen_string_literal: true

# One message that goes back and forth by two Queues, `@round_trips` times, so that every `pop` finds its Queue empty.
module BackAndForth
  private

  # Sends it, and waits until it is back.
  def ping(there, back, turns)
    right = 0
    number = 0
    while number < @round_trips
      there.push(number)
      right += 1 if back.pop == number
      turns.first if number.zero?
      number += 1
    end
    turns.last(right)
  end

  # Sends it back. Yields after the first time, if there is a block.
  def pong(there, back)
    left = @round_trips
    while left.positive?
      back.push(there.pop)
      yield if block_given? && left == @round_trips
      left -= 1
    end
  end
end
