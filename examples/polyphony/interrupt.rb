# frozen_string_literal: true

# A time limit written by hand: one fiber raises an exception in another fiber that waits.
#
#   ruby -Ilib examples/polyphony/interrupt.rb [seconds]

require "heddle/core_ext"

def with_timeout(duration)
  interruptible_fiber = Fiber.current
  timeout_fiber = spin do
    sleep duration
    interruptible_fiber.raise "timeout"
  end

  yield
ensure
  timeout_fiber.terminate
end

seconds = Float(ARGV.fetch(0, 1))
work = spin do
  with_timeout(seconds) { sleep seconds / 2 }
  puts "In time."
  with_timeout(seconds) { sleep }
rescue RuntimeError => e
  puts "Too late: #{e.message}"
end

work.await
