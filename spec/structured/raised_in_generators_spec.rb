# frozen_string_literal: true

# What is sent to a fiber that has resumed a generator is raised in the generator, if that waits or was preempted. The
# fiber alone knows until when it is meant.
RSpec.describe "What is sent to a fiber that has resumed a generator" do
  error = Class.new(StandardError)
  stop = Heddle.const_get(:Stop)
  unit_class = Heddle.const_get(:UnitOfWork)

  # Runs a program in a thread of its own, which its masks do not outlive. Returns what the program has seen.
  def seen(**options, &program)
    seen = []
    Thread.new { Heddle.run(preempt: :all, **options) { program.call(seen) } }.value
    seen
  end

  # What the block raises, or its value.
  define_method(:outcome) do |&block|
    block.call
  rescue error, stop => e
    e.class
  end

  # Computes until another fiber has run the block, which is while the generator is preempted, and yields 1. It masks
  # everything until its second value is asked for, but does not mask its waits.
  def masking_generator(&block)
    has_begun = is_done = false
    Heddle.spin do
      Heddle.snooze until has_begun
      block.call
      is_done = true
    end
    Enumerator.new do |yielder|
      Thread.handle_interrupt(Exception => :never) do
        has_begun = true
        nil until is_done
        yielder << 1
      end
      Heddle.snooze
      yielder << 2
    end
  end

  # Yields the value of the block. That is passed a wait, during which another fiber raises into the unit. Then the wait
  # ends.
  def waiting_generator(unit, error, &block)
    begun = Queue.new
    gate = Queue.new
    Heddle.spin do
      begun.pop
      unit.raise(error)
      Heddle.snooze
      gate.push(1)
    end
    wait = lambda do
      begun.push(true)
      gate.pop
    end
    Enumerator.new { |yielder| yielder << block.call(wait) }
  end

  it "is not raised after the block of a unit that it was sent to, if no fiber has waited in between" do
    outcomes = seen(preempt: :none) do |seen|
      unit = unit_class.new
      values = Enumerator.new do |yielder|
        Heddle.shield { unit.raise(error) }
        yielder << 1
      end
      seen << outcome { unit.run { values.next } } << outcome { Heddle.snooze }
    end
    expect(outcomes).to eq [1, nil]
  end

  it "is raised in the unit's next wait, if the generator could not raise it" do
    outcomes = seen do |seen|
      unit = unit_class.new
      values = masking_generator { unit.raise(error) }
      seen << outcome { unit.run { (seen << values.next) && Heddle.snooze } } << outcome { values.next }
    end
    expect(outcomes).to eq [1, error, 2]
  end

  it "is not raised in a generator that is resumed again after the unit's block" do
    outcomes = seen do |seen|
      unit = unit_class.new
      values = masking_generator { unit.raise(error) }
      seen << outcome { unit.run { values.next } } << outcome { values.next }
    end
    expect(outcomes).to eq [1, 2]
  end

  it "ends that fiber alone, if it is a stop, and not another one that resumes the generator later" do
    outcomes = seen do |seen|
      stopped = nil
      values = masking_generator { (Heddle.snooze until stopped) || Heddle.stop(stopped) }
      stopped = Heddle.spin do
        seen << values.next
        Heddle.snooze
        seen << :not_reached
      end
      Heddle.await(stopped)
      seen << Heddle.await(Heddle.spin { outcome { values.next } })
    end
    expect(outcomes).to eq [1, 2]
  end

  it "is held back by the fiber's shield while the generator waits" do
    outcomes = seen do |seen|
      unit = unit_class.new
      values = waiting_generator(unit, error) { |wait| wait.call }
      seen << outcome { unit.run { Heddle.shield { seen << outcome { values.next } } && :not_raised } }
    end
    expect(outcomes).to eq [1, error]
  end

  it "is held back by the generator's shield" do
    outcomes = seen(preempt: :none) do |seen|
      unit = unit_class.new
      values = waiting_generator(unit, error) { |wait| Heddle.shield { outcome { wait.call } } }
      seen << outcome { unit.run { (seen << values.next) && Heddle.snooze } } << outcome { Heddle.snooze }
    end
    expect(outcomes).to eq [1, error, nil]
  end

  it "is raised once for each call, while the generator computes in a block of Heddle's" do
    outcomes = seen do |seen|
      unit = unit_class.new
      has_begun = false
      interrupted = -> { outcome { Thread.handle_interrupt(error => :immediate) { nil until seen.frozen? } } }
      values = Enumerator.new do |yielder|
        Heddle.cancel_after(60) do
          Thread.handle_interrupt(error => :never) do
            has_begun = true
            2.times { seen << interrupted.call }
          end
        end
        yielder << 1
      end
      Heddle.spin do
        Heddle.snooze until has_begun
        unit.raise(error)
        # As in a thread, the second one may take the place of the first one while that unwinds.
        Heddle.snooze until seen.any?
        unit.raise(error)
      end
      seen << unit.run { values.next }
    end
    expect(outcomes).to eq [error, error, 1]
  end

  {
    "computes meanwhile" => ->(failed) { nil until failed.call },
    "is in a block of Heddle's meanwhile" => ->(failed) { Heddle.shield { nil until failed.call } }
  }.each do |name, work|
    it "is raised in the generator's first wait, if it is the error of a child and the generator #{name}" do
      outcomes = seen do |seen|
        has_failed = false
        values = Enumerator.new do |yielder|
          work.call(-> { has_failed })
          yielder << outcome { Queue.new.pop }
        end
        Heddle.spin { (has_failed = true) && raise(error) }
        seen << values.next
      end
      expect(outcomes).to eq [error]
    end
  end

  it "is raised in the order in which it was sent" do
    later = Class.new(error)
    outcomes = seen do |seen|
      unit = unit_class.new
      begun = Queue.new
      values = Enumerator.new do |yielder|
        2.times { seen << outcome { begun.push(true) && Queue.new.pop } }
        yielder << 1
      end
      Heddle.spin { begun.pop && [error, later].each { |sent| unit.raise(sent) } }
      seen << unit.run { values.next }
    end
    expect(outcomes).to eq [error, later, 1]
  end

  it "is raised once, if its class makes an exception of another class" do
    outcomes = seen do |seen|
      values = Enumerator.new { |yielder| yielder << Queue.new.pop }
      Timeout.timeout(a_moment, SystemCallError, Errno::ENOENT::Errno) do
        values.next
      ensure
        seen << Heddle.snooze
      end
    rescue Errno::ENOENT => e
      seen << e.class
    end
    expect(outcomes).to eq [nil, Errno::ENOENT]
  end

  it "is raised as what its class raises, if that makes no exception" do
    unmade = Class.new(StandardError) { def initialize(_one, _two) = super() }
    outcomes = seen do |seen|
      values = Enumerator.new { |yielder| yielder << Queue.new.pop }
      Timeout.timeout(a_moment, unmade, "one") { values.next }
    rescue ArgumentError => e
      seen << e.class
    end
    expect(outcomes).to eq [ArgumentError]
  end

  it "is raised in a generator that only yields, if it was sent while that computed" do
    outcomes = seen(preempt: :none) do |seen|
      unit = unit_class.new
      values = Enumerator.new do
        sender = Thread.new { unit.raise(error) }
        Thread.pass while sender.alive?
        loop { Heddle.snooze }
      end
      seen << outcome { unit.run { values.next } }
    end
    expect(outcomes).to eq [error]
  end

  it "is raised in a block of Heddle's that the generator has begun since" do
    outcomes = seen do |seen|
      unit = unit_class.new
      values = Enumerator.new do
        Thread.handle_interrupt(error => :never) do
          sender = Thread.new { unit.raise(error) }
          Thread.pass while sender.alive?
          Heddle.cancel_after(60) { Thread.handle_interrupt(error => :immediate) { nil until seen.frozen? } }
        end
      end
      seen << outcome { unit.run { values.next } }
    end
    expect(outcomes).to eq [error]
  end

  it "is raised in a generator that computes, and masks what was raised into it" do
    later = Class.new(StandardError)
    outcomes = seen do |seen|
      unit = unit_class.new
      masking = masked = nil
      values = Enumerator.new do
        Thread.handle_interrupt(error => :never) do
          masking = Fiber.current
          nil until masked
          sender = Thread.new { unit.raise(later) }
          Thread.pass while sender.alive?
          nil until seen.frozen?
        end
      end
      Heddle.spin do
        Heddle.snooze until masking
        masking.raise(error)
        masked = true
      end
      unit.run { values.next }
    rescue later => e
      seen << e.class
    end
    expect(outcomes).to eq [later]
  end

  it "is raised again in a generator, if the fiber has swallowed a limit before" do
    outcomes = seen do |seen|
      values = Enumerator.new { |yielder| yielder << Queue.new.pop }
      Heddle.cancel_after(a_moment, stop) do
        swallow_in_sleep(1)
        Heddle.snooze
        values.next
      end
    rescue stop => e
      seen << e.class
    end
    expect(outcomes).to eq [stop]
  end

  it "is not raised in a generator that has yielded, until the fiber resumes it" do
    outcomes = virtually do
      values = Enumerator.new do |yielder|
        Timeout.timeout(1, error) do
          yielder << 1
          Heddle.snooze
        end
      end
      [values.next, sleep(2), outcome { values.next }]
    end
    expect(outcomes).to eq [1, 2, error]
  end

  it "is not raised in a generator that another fiber has resumed since" do
    outcomes = seen do |seen|
      unit = unit_class.new
      sent = false
      shared = Enumerator.new do |yielder|
        Heddle.cancel_after(60) do
          yielder << 1
          Heddle.snooze
        end
        sender = Thread.new { sent = unit.raise(error) }
        Thread.pass while sender.alive?
        yielder << Array.new(100_000) { sent }.uniq
      end
      gate = Queue.new
      is_waiting = false
      waiting = Enumerator.new { |yielder| yielder << ((is_waiting = true) && gate.pop) }
      first = Heddle.spin { outcome { unit.run { shared.next && waiting.next } } }
      Heddle.snooze until is_waiting
      seen << Heddle.await(Heddle.spin { outcome { shared.next } })
      gate.push(2)
      seen << Heddle.await(first)
    end
    expect(outcomes).to eq [[true], error]
  end
end
