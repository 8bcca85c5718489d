# frozen_string_literal: true

# Blocks that rescue whatever is raised in them, as careless programs do.
module Swallowing
  # Runs the block again and again, whatever ends it.
  def swallow
    loop do
      yield
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end
  end

  # Sleeps, and swallows what is raised in the sleep, so many times. Returns the number of exceptions.
  def swallow_in_sleep(times)
    swallowed = 0
    while swallowed < times
      begin
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        swallowed += 1
      end
    end
    swallowed
  end

  # Computes until the given number of exceptions has been raised. Collects them in `raised`, and swallows all but the
  # last. The block runs again and again meanwhile.
  def compute_until_raised(raised, times)
    loop { block_given? ? yield : Integer.sqrt(2) }
  rescue Exception => e # rubocop:disable Lint/RescueException
    raised << e
    retry if raised.size < times
    raise
  end
end
