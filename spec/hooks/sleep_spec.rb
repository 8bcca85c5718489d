# frozen_string_literal: true

require "io/wait"
require "monitor"
require "socket"

RSpec.describe "Kernel#sleep in a fiber" do
  it "lets the other fibers run when its duration is 0" do
    order = []
    Heddle.run do
      start = Queue.new
      3.times do |i|
        Fiber.schedule do
          start.pop
          2.times do |round|
            order << [round, i]
            sleep(0)
          end
        end
      end
      start.close
    end

    expect(order).to eq([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
  end

  it "returns from a duration of 0 when there is no other fiber" do
    expect(Heddle.run { 3.times.count { sleep(0) } }).to eq(3)
  end

  it "lasts until the fiber is woken when it has no duration" do
    order = []
    Heddle.run do
      sleeper = Fiber.schedule do
        sleep
        order << :woken
      end
      order << :waking
      Fiber.scheduler.unblock(nil, sleeper)
    end

    expect(order).to eq(%i[waking woken])
  end

  it "lasts until the fiber is woken when its duration is nil" do
    order = []
    Heddle.run do
      sleeper = Fiber.schedule do
        sleep(nil)
        order << :woken
      end
      order << :waking
      Fiber.scheduler.unblock(nil, sleeper)
    end

    expect(order).to eq(%i[waking woken])
  end

  it "ends early when another fiber wakes the sleeper" do
    woken = false
    Heddle.run do
      sleeper = Fiber.schedule do
        sleep(60)
        woken = true
      end
      Fiber.scheduler.unblock(nil, sleeper)
    end

    expect(woken).to be(true)
  end

  it "returns the number of whole seconds of the clock that have passed" do
    expect(Heddle.run { sleep(1.01) }).to be_an(Integer).and be >= 1 # at least
  end

  [0.02, Rational(1, 50), 1e-9].each do |duration|
    it "lasts at least its duration of #{duration.inspect}" do
      expect(Heddle.run { seconds { sleep(duration) } }).to be >= duration
    end
  end

  it "accepts a duration that responds to divmod, as Ruby does" do
    duration = Class.new { def divmod(divisor) = 0.02.divmod(divisor) }.new

    expect(Heddle.run { seconds { sleep(duration) } }).to be >= 0.02
  end

  it "ends in the order of the deadlines, not of the calls" do
    expect(Heddle.run { overtaken_sleeps([0.06, 0.02, 0.04, 0]) }).to eq(0)
  end

  it "ends in the order of the calls where the durations are the same" do
    order = []
    duration = a_moment
    Heddle.run do
      100.times do |i|
        Fiber.schedule do
          sleep(duration)
          order << i
        end
      end
    end

    expect(order).to eq((0...100).to_a)
  end

  it "ends for each of 10,000 fibers, in the order of the deadlines" do
    durations = Random.new(11).then { |random| Array.new(10_000) { random.rand(0.3) } }

    expect(in_child { Heddle.run { overtaken_sleeps(durations) } }).to eq(0)
  end

  it "ends for none of 1,000 fibers before its deadline" do
    early = 0
    Heddle.run do
      1000.times do |i|
        Fiber.schedule { early += 1 if seconds { sleep(i * 0.0003) } < i * 0.0003 }
      end
    end

    expect(early).to eq(0)
  end

  [-1, -0.5, Rational(-1, 3), Float::NAN, Float::INFINITY, -Float::INFINITY, 10**25, "1", :soon, [], true, Object.new]
    .each do |duration|
    it "raises for #{duration.class} #{duration.to_s[0, 9]} what it raises without a scheduler" do
      expected = error_of { sleep(duration) }

      expect(Heddle.run { error_of { sleep(duration) } })
        .to have_attributes(class: expected.class, message: expected.message)
    end
  end

  it "raises for two arguments what it raises without a scheduler" do
    expected = error_of { sleep(60, 2) }

    expect(Heddle.run { error_of { sleep(60, 2) } }).to be_instance_of(expected.class)
  end

  it "lets the fiber continue after it raised" do
    result = virtually do
      error_of { sleep(-1) }
      sleep(1)
      :goes_on
    end

    expect(result).to eq(:goes_on)
  end

  it "runs in a thread without a scheduler while a fiber waits for that thread" do
    order = []
    gate = Queue.new
    Heddle.run do
      Fiber.schedule do
        Thread.new { gate.pop && sleep(a_moment) }.join
        order << :thread
      end
      order << :fiber
      gate.push(:open)
    end

    expect(order).to eq(%i[fiber thread])
  end
end

RSpec.describe "Durations" do
  with_to_f = Class.new { def to_f = 0.01 }.new
  with_divmod = Class.new { def divmod(number) = 0.01.divmod(number) }.new
  names = { with_to_f => "with to_f", with_divmod => "with divmod" }
  names.default_proc = ->(_, value) { value.is_a?(Numeric) ? value.to_s : value.class.name }
  values = [
    0, 0.0, -0.0, 0.01, 1/100r, 1e-12, -1, -0.5, -1r, nil, false, true, Float::INFINITY, -Float::INFINITY, Float::NAN,
    2**30, 2**64, 10**30, -2**70, 1e20, 1e300, Rational(10**30, 3), "1", :one, [], with_to_f, with_divmod,
    Complex(0, 0), Complex(0, 1)
  ]
  # With these a call ends soon, or raises. With all others it raises at once, or waits for longer than an example.
  brief = [0, 0.0, -0.0, 0.01, 1/100r, 1e-12, -1, -0.5, -1r, -Float::INFINITY, -2**70, with_to_f, with_divmod,
           Complex(0, 0)]

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
      it "have the same effect in #{name} as without Heddle: #{names[value]}" do
        expect_same_outcome(may_wait: !brief.include?(value)) { IO.pipe { |*pipe| call[value, pipe] } }
      end
    end
  end

  values.each do |value|
    it "have the same effect in Thread#join as without Heddle: #{names[value]}" do
      waiting = Thread.new { sleep }
      expect_same_outcome(may_wait: !brief.include?(value)) { waiting.join(value) }
    ensure
      waiting.kill.join
    end
  end
end
