# frozen_string_literal: true

require "heddle/testing"
require "monitor"

RSpec.describe "Heddle::Testing.explore with detect: :lock_order" do
  include ExploredBank

  # @return [Heddle::Testing::Failure, nil] of the usual schedule alone
  def found(detect: :lock_order, &program) = failure(program, detect:, runs: 1)

  # Two fibers, of which the second one locks in the other order.
  def in_both_orders(one, two)
    first = Heddle.spin(name: "first") do
      one.synchronize do
        two.synchronize { nil }
      end
    end
    second = Heddle.spin(name: "second") do
      two.synchronize do
        one.synchronize { nil }
      end
    end
    Heddle.await_all(first, second)
  end

  it "fails where no fiber has waited" do
    expect(found { in_both_orders(Mutex.new, Mutex.new) }.cause).to be_a(Heddle::Testing::LockOrder)
  end

  it "tells both fibers, locks and places" do
    line = method(:in_both_orders).source_location.last

    expect(without_folders(found { in_both_orders(Mutex.new, Monitor.new) }.message))
      .to end_with(<<~TEXT.chomp)
        Fibers lock in different orders, and may wait for each other for ever.
          first locks Mutex 1 at lock_order_spec.rb:#{line + 2}, then Monitor 2 at lock_order_spec.rb:#{line + 3}
          second locks Monitor 2 at lock_order_spec.rb:#{line + 7}, then Mutex 1 at lock_order_spec.rb:#{line + 8}
      TEXT
  end

  it "replays by its schedule" do
    program = -> { in_both_orders(Mutex.new, Mutex.new) }
    schedule = failure(program, detect: :lock_order).schedule

    expect(failure(program, detect: [:lock_order], schedule:)).to have_attributes(schedule:, switches: 0)
  end

  it "sees lock, enter and try_lock" do
    failure = found do
      one = Mutex.new
      two = Monitor.new
      first = Heddle.spin do
        one.try_lock
        two.enter
        two.exit
        one.unlock
      end
      second = Heddle.spin do
        two.enter
        one.lock
        one.unlock
        two.exit
      end
      Heddle.await_all(first, second)
    end

    expect(failure.cause).to be_a(Heddle::Testing::LockOrder)
  end

  it "sees a circle of three fibers" do
    failure = found do
      forks = Array.new(3) { Mutex.new }
      eaters = Array.new(3) do |number|
        Heddle.spin { forks[number].synchronize { forks[(number + 1) % 3].synchronize { nil } } }
      end
      Heddle.await_all(*eaters)
    end

    expect(failure.cause.message.lines.size).to eq 4
  end

  it "reports a deadlock of the schedule as that" do
    program = -> { in_both_orders(Mutex.new, Mutex.new) }
    causes = (1..200).lazy.map { |seed| failure(program, detect: :lock_order, seed:)&.cause }

    expect(causes.find { |cause| cause.is_a?(Heddle::Testing::Deadlock) }.message).to match(/first waits for Mutex/)
  end

  it "finds nothing without the option" do
    expect(found(detect: nil) { in_both_orders(Mutex.new, Mutex.new) }).to be_nil
  end

  it "finds nothing where the order is the same" do
    program = lambda do
      one = Mutex.new
      two = Mutex.new
      Heddle.await_all(*Array.new(3) { Heddle.spin { one.synchronize { two.synchronize { nil } } } })
    end

    expect(failure(program, detect: :lock_order, runs: 100)).to be_nil
  end

  it "finds nothing where another lock is always taken before" do
    program = lambda do
      gate = Mutex.new
      locks = Array.new(2) { Mutex.new }
      fibers = [locks, locks.reverse].map do |one, two|
        Heddle.spin { gate.synchronize { one.synchronize { two.synchronize { nil } } } }
      end
      Heddle.await_all(*fibers)
    end

    expect(failure(program, detect: :lock_order, runs: 100)).to be_nil
  end

  it "finds nothing where a lock was released before" do
    program = lambda do
      locks = Array.new(2) { Mutex.new }
      fibers = [locks, locks.reverse].map { |pair| Heddle.spin { pair.each { |lock| lock.synchronize { nil } } } }
      Heddle.await_all(*fibers)
    end

    expect(failure(program, detect: :lock_order, runs: 100)).to be_nil
  end

  it "finds nothing where one fiber locks in both orders" do
    expect(found do
      locks = Array.new(2) { Mutex.new }
      [locks, locks.reverse].each { |one, two| one.synchronize { two.synchronize { nil } } }
    end).to be_nil
  end

  it "finds nothing where only try_lock is in the other order" do
    program = lambda do
      one = Mutex.new
      two = Mutex.new
      first = Heddle.spin { one.synchronize { two.synchronize { nil } } }
      second = Heddle.spin { two.synchronize { one.try_lock && one.unlock } }
      Heddle.await_all(first, second)
    end

    expect(failure(program, detect: :lock_order, runs: 100)).to be_nil
  end

  it "finds nothing where the second fiber starts after the first one's end, or locks before it starts a fiber" do
    program = lambda do
      one = Mutex.new
      two = Mutex.new
      one.synchronize { two.synchronize { nil } }
      2.times { Heddle.await(Heddle.spin { two.synchronize { one.synchronize { nil } } }) }
      one.synchronize { two.synchronize { nil } }
    end

    expect(failure(program, detect: :lock_order, runs: 100)).to be_nil
  end

  # The first fiber locks in one order, and then the second one in the other order.
  {
    "a Queue" => lambda do |one, two|
      queue = Queue.new
      [-> { one.call && queue.push(1) }, -> { queue.pop && two.call }]
    end,
    "a fiber that awaits its sibling" => lambda do |one, two|
      first = Heddle.spin(&one)
      [-> { first.await && two.call }]
    end,
    "a Semaphore" => lambda do |one, two|
      semaphore = Heddle::Semaphore.new(1)
      [-> { semaphore.acquire(&one) }, -> { semaphore.acquire(&two) }]
    end,
    "a pipe" => lambda do |one, two|
      reader, writer = IO.pipe
      [-> { one.call && writer.close }, -> { reader.read && two.call }]
    end
  }.each do |what, programs|
    it "finds nothing where #{what} orders the fibers" do
      program = lambda do
        locks = Array.new(2) { Mutex.new }
        works = [locks, locks.reverse].map { |one, two| -> { one.synchronize { two.synchronize { 1 } } } }
        Heddle.await_all(*programs.call(*works).map { |work| Heddle.spin(&work) })
      end

      expect(failure(program, detect: :lock_order, runs: 20)).to be_nil
    end
  end
end
