# frozen_string_literal: true

RSpec.describe "Kernel#sleep in a fiber" do
  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Returns what the block raises, as class and message.
  def error_of
    yield
    nil
  rescue StandardError => e
    [e.class, e.message]
  end

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
    expect(Heddle.run { sleep(1.01) }).to eq(1).or eq(2)
  end

  [0.02, Rational(1, 50), 1e-9].each do |duration|
    it "lasts at least its duration of #{duration.inspect}" do
      elapsed = Heddle.run do
        started = now
        sleep(duration)
        now - started
      end

      expect(elapsed).to be >= duration
    end
  end

  it "accepts a duration that responds to divmod, as Ruby does" do
    duration = Class.new { def divmod(divisor) = 0.02.divmod(divisor) }.new
    elapsed = Heddle.run do
      started = now
      sleep(duration)
      now - started
    end

    expect(elapsed).to be >= 0.02
  end

  it "ends in the order of the deadlines, not of the calls" do
    expect(Heddle.run { order_of_sleeps([0.06, 0.02, 0.04, 0]) }).to eq([0, 0.02, 0.04, 0.06])
  end

  it "ends in the order of the calls where the durations are the same" do
    order = []
    Heddle.run do
      100.times do |i|
        Fiber.schedule do
          sleep(0.02)
          order << i
        end
      end
    end

    expect(order).to eq((0...100).to_a)
  end

  # The order of 10,000 sleepers: what can be known of each fiber's end is that it lies between its duration after the
  # moment before it fell asleep, and its duration after the moment when the next fiber began.
  describe "for 10,000 fibers at once" do
    let(:durations) { Random.new(11).then { |random| Array.new(10_000) { random.rand(0.3) } } }

    def sleep_all(durations)
      begun = []
      woken = []
      Heddle.run do
        durations.each_with_index do |duration, i|
          Fiber.schedule do
            begun[i] = now
            sleep(duration)
            woken << [i, now]
          end
        end
        begun << now
      end
      [begun, woken]
    end

    it "ends for each fiber, and for none before its deadline" do
      begun, woken = sleep_all(durations)
      early = woken.count { |i, time| time < begun[i] + durations[i] }

      expect([woken.size, early]).to eq([10_000, 0])
    end

    it "ends in the order of the deadlines" do
      begun, woken = sleep_all(durations)
      latest = 0
      overtaken = woken.count do |i, _time|
        earliest_end = begun[i] + durations[i]
        latest_end = begun[i + 1] + durations[i]
        (latest > latest_end).tap { latest = [latest, earliest_end].max }
      end

      expect(overtaken).to eq(0)
    end
  end

  [-1, -0.5, Rational(-1, 3), Float::NAN, Float::INFINITY, -Float::INFINITY, 10**25, "1", :soon, [], true, Object.new]
    .each do |duration|
    it "raises for #{duration.class} #{duration.to_s[0, 9]} what it raises without a scheduler" do
      expected = error_of { sleep(duration) }

      expect(Heddle.run { error_of { sleep(duration) } }).to eq(expected)
    end
  end

  it "raises for two arguments what it raises without a scheduler" do
    expected = error_of { sleep(1, 2) }

    expect(Heddle.run { error_of { sleep(1, 2) } }.first).to eq(expected.first)
  end

  it "lets the fiber continue after it raised" do
    result = Heddle.run do
      error_of { sleep(-1) }
      sleep(0.001)
      :goes_on
    end

    expect(result).to eq(:goes_on)
  end

  it "runs in a thread without a scheduler while a fiber waits for that thread" do
    order = []
    Heddle.run do
      Fiber.schedule do
        Thread.new { sleep(0.02) }.join
        order << :thread
      end
      order << :fiber
    end

    expect(order).to eq(%i[fiber thread])
  end
end
