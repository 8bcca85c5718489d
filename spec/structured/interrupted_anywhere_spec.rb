# frozen_string_literal: true

require "heddle/testing"

# What a fiber or a thread has taken, or was woken for, is not lost with it, wherever an exception reaches it.
RSpec.describe "Interrupted anywhere" do
  library = [File.expand_path("../../lib/heddle/coordination", __dir__)]

  # Each makes its program anew, and returns what is interrupted, and what raises if that has left something behind.
  # The interrupted part waits in the end, so that all of its points come before the exception.
  {
    "Semaphore#acquire with a free permit gives it back" => lambda {
      semaphore = Heddle::Semaphore.new(1)
      [-> { semaphore.acquire { sleep } }, -> { semaphore.try_acquire or raise "the permit is lost" }]
    },
    "Semaphore#acquire that waits for a permit passes it on" => lambda {
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      Heddle.spin { semaphore.release }
      [-> { semaphore.acquire { sleep } }, -> { semaphore.acquire(timeout: 1) or raise "the permit is lost" }]
    },
    "Barrier#spin counts no fiber that has not begun" => lambda {
      barrier = Heddle::Barrier.new
      [-> { barrier.spin { nil } && sleep },
       -> { Heddle.cancel_after(1) { barrier.await_all } && (barrier.empty? or raise "it counts #{barrier.size}") }]
    },
    "Barrier#await_all is not counted as waiting" => lambda {
      barrier = Heddle::Barrier.new
      barrier.spin { sleep }
      [-> { barrier.await_all }, lambda {
        barrier.stop
        barrier.spin { :new }
        values = barrier.await_all
        raise "it still has the stopped fiber: #{values}" unless values == [:new]
      }]
    }
  }.each do |promise, program|
    it "#{promise}: a fiber that is stopped" do
      exploration = Heddle::Testing.explore(runs: 300, clock: :virtual, paths: library) do
        interrupted, check = program.call
        fiber = Heddle.spin(&interrupted)
        Heddle.snooze
        Heddle.stop(fiber)
        Heddle.await(fiber)
        check.call
      end

      expect(exploration.runs).to eq(300)
    end
  end

  structured = %w[structured coordination].map { |folder| File.expand_path("../../lib/heddle/#{folder}", __dir__) }
  two_sleepers = -> { Array.new(2) { |n| Heddle.spin { sleep(n) } } }

  {
    "Heddle.spin" => -> { Heddle.spin { sleep } },
    "Heddle.await" => -> { Heddle.await(Heddle.spin { sleep(1) }) },
    "Heddle.await_all" => -> { Heddle.await_all(*two_sleepers.call) },
    "Heddle.race" => -> { Heddle.race(-> { sleep 1 }, -> { sleep 2 }) },
    "Heddle.map" => -> { Heddle.map(1..3, limit: 2) { |n| sleep(n) } },
    "Heddle.after" => -> { Heddle.after(1) { nil } },
    "Heddle.move_on_after" => -> { Heddle.move_on_after(1) { sleep } },
    "Heddle.shield" => -> { Heddle.shield { Heddle.await(Heddle.spin { sleep(1) }) } },
    "Heddle.run" => -> { Heddle.run { two_sleepers.call && Fiber.schedule { sleep(1) } } },
    "Barrier#await_all" => -> { Heddle::Barrier.new.tap { |barrier| 2.times { barrier.spin { sleep(1) } } }.await_all },
    "Barrier#stop" => -> { Heddle::Barrier.new.tap { |barrier| 2.times { barrier.spin { sleep } } }.stop }
  }.each do |name, work|
    it "#{name} leaves no fiber behind: a fiber that is stopped" do
      exploration = Heddle::Testing.explore(runs: 100, clock: :virtual, paths: structured) do
        before = Heddle.fibers.size
        fiber = Heddle.spin { work.call && sleep }
        Heddle.await(Heddle.spin { sleep(rand(3) * 0.75) && Heddle.stop(fiber) })
        Heddle.await(fiber)
        raise "#{Heddle.fibers.size - before} fibers are left" if Heddle.fibers.size > before
      end

      expect(exploration.runs).to eq(100)
    end
  end

  interruption = Class.new(Exception) # rubocop:disable Lint/InheritException -- as what ends a thread

  # Runs the work in a thread that an exception reaches at the nth event of Heddle's code there, or while it waits in
  # the end. Returns whether there were so many events.
  interrupted_at = lambda do |nth, begun, work|
    events = 0
    waits = false
    trace = TracePoint.new(:line, :call, :return, :b_call, :b_return, :c_call, :c_return) do |point|
      next if waits || !point.path.include?("/lib/heddle/") || (events += 1) != nth

      # As if another thread raised it: a mask defers it.
      Thread.current.raise(interruption)
    end
    thread = Thread.new do
      trace.enable(target_thread: Thread.current) { work.call(begun) }
    rescue interruption
      nil
    ensure
      begun.close
    end
    waits = begun.pop
    thread.raise(interruption)
    thread.join
    events >= nth
  end

  {
    "Semaphore#acquire with a free permit gives it back" => lambda { |_begun|
      semaphore = Heddle::Semaphore.new(1)
      [->(begun) { semaphore.acquire { begun.push(true) && sleep } }, -> { semaphore.try_acquire }]
    },
    "Semaphore#acquire that waits for a permit passes it on" => lambda { |begun|
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      releasing = Thread.new do
        Thread.pass until semaphore.waiting == 1 || begun.closed?
        semaphore.release
      end
      [->(begun) { semaphore.acquire { begun.push(true) && sleep } }, -> { releasing.join && semaphore.try_acquire }]
    },
    "ThreadPool#process leaves a pool that works" => lambda { |_begun|
      pool = Heddle::ThreadPool.new(threads: 1)
      [->(begun) { pool.process { nil } || (begun.push(true) && sleep) },
       -> { pool.process { true }.tap { pool.close } }]
    }
  }.each do |promise, program|
    it "#{promise}: a thread in which another one raises" do
      kept = (1..).lazy.map do |nth|
        begun = Thread::Queue.new
        interrupted, check = program.call(begun)
        more = interrupted_at.call(nth, begun, interrupted)
        [nth, check.call, more]
      end.take_while(&:last).to_a

      expect(kept.reject { |_, held, _| held }).to be_empty
    end
  end
end
