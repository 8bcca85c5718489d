# frozen_string_literal: true

require "io/wait"
require "monitor"
require "socket"

RSpec.describe "Durations" do
  with_to_f = Class.new { def to_f = 0.01 }.new
  with_divmod = Class.new { def divmod(number) = 0.01.divmod(number) }.new
  values = [
    0, 0.0, -0.0, 0.01, 1/100r, 1e-12, -1, -0.5, -1r, nil, false, true, Float::INFINITY, -Float::INFINITY, Float::NAN,
    2**30, 2**64, 10**30, -2**70, 1e20, 1e300, Rational(10**30, 3), "1", :one, [], with_to_f, with_divmod,
    Complex(0, 0), Complex(0, 1)
  ]

  # Each call also gets an empty pipe that is open.
  {
    "Kernel#sleep" => ->(time, _) { sleep(time) && :slept },
    "Queue#pop" => ->(time, _) { Queue.new.pop(timeout: time) },
    "Queue#pop of a full queue" => ->(time, _) { Queue.new.tap { |queue| queue << 1 }.pop(timeout: time) },
    "SizedQueue#push" => ->(time, _) { SizedQueue.new(1).tap { |queue| queue << 1 }.push(2, timeout: time) },
    "IO.select" => ->(time, pipe) { IO.select([pipe.first], nil, nil, time) },
    "IO.select of an IO that is ready" => ->(time, pipe) { IO.select(nil, [pipe.last], nil, time).map(&:size) },
    "IO#wait_readable" => ->(time, pipe) { pipe.first.wait_readable(time) },
    "IO#wait_writable" => ->(time, pipe) { pipe.last.wait_writable(time).class },
    "IO#wait" => ->(time, pipe) { pipe.first.wait(IO::READABLE, time) },
    "IO#timeout=" => ->(time, pipe) { (pipe.first.timeout = time) && pipe.first.read(1) },
    # The scheduler doesn't determine what these calls return after their timeout.
    "Mutex#sleep" => lambda { |time, _|
      mutex = Mutex.new
      mutex.synchronize { mutex.sleep(time).then { :slept } }
    },
    "ConditionVariable#wait" => lambda { |time, _|
      mutex = Mutex.new
      mutex.synchronize { ConditionVariable.new.wait(mutex, time).then { :slept } }
    }
  }.each do |name, call|
    values.each do |value|
      it "have the same effect in #{name} as without Heddle: #{value.is_a?(Numeric) ? value.to_s : value.class}" do
        expect_same_outcome { IO.pipe { |*pipe| call[value, pipe] } }
      end
    end
  end

  values.each do |value|
    it "have the same effect in Thread#join as without Heddle: #{value.is_a?(Numeric) ? value.to_s : value.class}" do
      waiting = Thread.new { sleep }
      expect_same_outcome { waiting.join(value) }
    ensure
      waiting.kill.join
    end
  end
end
