# frozen_string_literal: true

require "socket"
require "timeout"

# Known traps of the hook interface. The tag `trap:` is the number of the trap. These have no example here:
#
#   trap | why
#   -----+-----------------------------------------------------------------------------------------------------------
#     16 | a Thread#raise that arrives inside `unblock` on 3.3: within one C call, so no example can cause it
#     19 | Ruby's own: the holder of a mutex, and the end of its hold
#     20 | errno around hooks is not visible; the specs of the hooks' return values cover its effects
RSpec.describe "A scheduler that blocks and unblocks fibers" do
  it "lets a trap handler push to a queue that a fiber waits for", trap: 9 do
    previous = trap("USR2", "DEFAULT")
    received = Heddle.run do
      queue = Queue.new
      trap("USR2") { queue.push(:from_the_handler) }
      Process.kill(:USR2, Process.pid)
      queue.pop
    end
    expect(received).to eq :from_the_handler
  ensure
    trap("USR2", previous)
  end

  it "wakes a loop that is asleep in the kernel from another thread", trap: 10 do
    thread_is_asleep = Queue.new
    queue = Queue.new
    thread = scheduled_thread do
      Fiber.schedule { thread_is_asleep.push(queue.pop) }
    end
    until_asleep(thread)
    queue.push(:woken)
    thread.join
    expect(thread_is_asleep.pop(timeout: 0)).to eq :woken
  end

  it "keeps a wake-up that comes before the loop is asleep", trap: 10 do
    received = Heddle.run do
      queue = Queue.new
      results = Queue.new
      Fiber.schedule { results.push(queue.pop) }
      Fiber.blocking { Thread.new { queue.push(:kept) }.join }
      results.pop
    end
    expect(received).to eq :kept
  end

  it "ignores an unblock for a fiber that is dead", trap: 11 do
    went_on = Heddle.run do
      dead = Fiber.schedule { :done }
      Fiber.scheduler.unblock(:blocker, dead)
      sleep(0)
      :went_on
    end
    expect(went_on).to eq :went_on
  end

  it "doesn't end a later sleep by an unblock for a fiber that runs", trap: 11 do
    took = Heddle.run do
      Fiber.scheduler.unblock(:blocker, Fiber.current)
      seconds { sleep(0.02) } # at least
    end
    expect(took).to be >= 0.02
  end

  it "doesn't end a later sleep by an unblock when the collector has moved objects since an earlier sleep", trap: 11 do
    took = Heddle.run do
      sleep(a_moment)
      GC.start
      GC.compact if GC.respond_to?(:compact)
      Fiber.scheduler.unblock(:blocker, Fiber.current)
      seconds { sleep(0.02) } # at least
    end
    expect(took).to be >= 0.02
  end

  it "doesn't end a wait for I/O by an unblock", trap: 11 do
    read = IO.pipe do |reader, writer|
      Heddle.run do
        results = Queue.new
        fiber = Fiber.schedule { results.push(reader.readpartial(10)) }
        Fiber.scheduler.unblock(:blocker, fiber)
        until_others_wait
        writer.write("bytes")
        results.pop
      end
    end
    expect(read).to eq "bytes"
  end

  it "doesn't end a wait for a process by an unblock", trap: 11 do
    status = Heddle.run do
      results = Queue.new
      fiber = Fiber.schedule { results.push(Process.wait2(spawn("sleep #{a_moment}; exit 9")).last.exitstatus) }
      Fiber.scheduler.unblock(:blocker, fiber)
      results.pop
    end
    expect(status).to eq 9
  end

  it "doesn't end a name resolution by an unblock", trap: 11 do
    addresses = Heddle.run do
      results = Queue.new
      fiber = Fiber.schedule { results.push(Addrinfo.getaddrinfo("localhost", 1, nil, :STREAM)) }
      Fiber.scheduler.unblock(:blocker, fiber)
      results.pop
    end
    expect(addresses).not_to be_empty
  end

  it "doesn't end IO.select by an unblock", trap: 11 do
    readable = IO.pipe do |reader, writer|
      Heddle.run do
        results = Queue.new
        fiber = Fiber.schedule { results.push(IO.select([reader])&.first&.size) }
        Fiber.scheduler.unblock(:blocker, fiber)
        until_others_wait
        writer.write("x")
        results.pop
      end
    end
    expect(readable).to eq 1
  end

  it "ends a sleep in kernel_sleep by unblock", trap: 12 do
    woken = Heddle.run do
      results = Queue.new
      mutex = Mutex.new
      condition = ConditionVariable.new
      Fiber.schedule { mutex.synchronize { results.push(condition.wait(mutex, 60) && :woken) } }
      condition.signal
      results.pop
    end
    expect(woken).to eq :woken
  end

  it "returns from sleep(0) after the other fibers have run", trap: 12 do
    order = []
    Heddle.run do
      gate = Queue.new
      Fiber.schedule { order << gate.pop }
      gate.push(:other)
      sleep(0)
      order << :back
    end
    expect(order).to eq %i[other back]
  end

  it "doesn't mistake an unrelated unblock for a thread's end", trap: 13 do
    joined = Heddle.run do
      gate = Queue.new
      thread = Thread.new { gate.pop }
      results = Queue.new
      fiber = Fiber.schedule { results.push(thread.join(60)) }
      Fiber.scheduler.unblock(:something_else, fiber)
      sleep(0)
      gate.push(:open)
      results.pop
    end
    expect(joined).to be_a Thread
  end

  [0.02, 1/50r].each do |time|
    it "sleeps for a #{time.class}, and not less", trap: 14 do
      expect(seconds { Heddle.run { sleep(time) } }).to be >= 0.02
    end

    it "waits for a queue for a #{time.class}, and not less", trap: 14 do
      expect(seconds { Heddle.run { Queue.new.pop(timeout: time) } }).to be >= 0.02
    end

    it "waits for an IO for a #{time.class}, and not less", trap: 14 do
      took = seconds { IO.pipe { |reader, _writer| Heddle.run { reader.wait_readable(time) } } }
      expect(took).to be >= 0.02
    end
  end

  [-1, -0.5, -1/2r].each do |time|
    it "raises ArgumentError for a sleep of #{time.inspect}", trap: 14 do
      expect { Heddle.run { sleep(time) } }.to raise_error(ArgumentError, /negative/)
    end
  end

  ["1", Object.new, :long].each do |time|
    it "raises TypeError for a sleep of a #{time.class}", trap: 14 do
      expect { Heddle.run { sleep(time) } }.to raise_error(TypeError, /can't convert #{time.class} into time interval/)
    end
  end

  it "raises for a sleep that isn't a number", trap: 14 do
    expect { Heddle.run { sleep(Float::NAN) } }.to raise_error(RangeError, /NaN/)
  end

  it "accepts a sleep too long for any clock", trap: 14 do
    woken = Heddle.run do
      results = Queue.new
      sleepers = [1e18.to_i, 1e10, 2**40].map do |time|
        Fiber.schedule do
          sleep(time)
        ensure
          results.push(time)
        end
      end
      sleep(a_moment)
      expect(results).to be_empty
      sleepers.each(&:kill)
      results.size
    end
    expect(woken).to eq 3
  end

  it "ignores an unblock after the scheduler's end", trap: 15 do
    scheduler, fiber = with_scheduler { |own| [own, Fiber.current] }
    expect { scheduler.unblock(:late, fiber) }.not_to raise_error
  end

  it "handles an unblock while it is being closed", trap: 15 do
    received = []
    gate = Queue.new
    thread = scheduled_thread { Fiber.schedule { received << gate.pop } }
    until_asleep(thread)
    gate.push(:late)
    thread.join
    expect(received).to eq [:late]
  end

  it "delivers a wake-up for a mutex before a timeout that is due at the same time", trap: 17 do
    second = Queue.new
    Heddle.run do
      mutex = Mutex.new
      mutex.lock
      Fiber.schedule do
        Timeout.timeout(0.01) { mutex.synchronize { nil } }
      rescue Timeout::Error
        nil
      end
      Fiber.schedule { mutex.synchronize { second.push(:locked) } }
      # Sleeps natively, so that no fiber handles the timeout before the mutex is free.
      Fiber.blocking { sleep(0.03) } # at least
      mutex.unlock
    end
    expect(second.pop(timeout: 0)).to eq :locked
  end

  it "delivers a wake-up for a queue before a timeout that is due at the same time", trap: 17 do
    received = []
    Heddle.run do
      queue = Queue.new
      Fiber.schedule do
        Timeout.timeout(0.01) { received << queue.pop }
      rescue Timeout::Error
        nil
      end
      Fiber.schedule { received << queue.pop }
      Fiber.blocking { sleep(0.03) } # at least
      queue.push(:item)
      until_others_wait
      queue.push(:other) if queue.num_waiting.positive?
    end
    expect(received.first).to eq :item
  end

  it "locks the mutex again when an error ends ConditionVariable#wait", trap: 18 do
    owned = nil
    Heddle.run do
      mutex = Mutex.new
      fiber = Fiber.schedule do
        mutex.synchronize do
          ConditionVariable.new.wait(mutex)
        ensure
          owned = mutex.owned?
        end
      rescue RuntimeError
        nil
      end
      # While this fiber holds the mutex, the interrupted one has to wait for it.
      mutex.synchronize do
        fiber.raise("interrupt")
        until_others_wait
        expect(owned).to be_nil
      end
    end
    expect(owned).to be true
  end
end
