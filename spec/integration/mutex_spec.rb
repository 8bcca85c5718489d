# frozen_string_literal: true

RSpec.describe "Mutex in fibers" do
  # Holds the mutex until the gate is opened.
  def hold(mutex, gate)
    Fiber.schedule { mutex.synchronize { gate.pop } }
  end

  it "makes a fiber wait until the holder unlocks it" do
    events = []
    Heddle.run do
      mutex = Mutex.new
      gate = Queue.new
      hold(mutex, gate)
      Fiber.schedule { mutex.synchronize { events << :locked } }
      events << :before
      gate.push(:open)
    end
    expect(events).to eq %i[before locked]
  end

  it "lets other fibers run while a fiber waits for it" do
    runs = 0
    Heddle.run do
      mutex = Mutex.new
      gate = Queue.new
      hold(mutex, gate)
      Fiber.schedule { mutex.synchronize { runs += 1 } }
      10.times do
        runs += 1
        sleep(0)
      end
      gate.push(:open)
    end
    expect(runs).to eq 11
  end

  it "is acquired by waiting fibers in the order of their requests" do
    order = []
    Heddle.run do
      mutex = Mutex.new
      gate = Queue.new
      hold(mutex, gate)
      5.times { |number| Fiber.schedule { mutex.synchronize { order << number } } }
      gate.push(:open)
    end
    expect(order).to eq [0, 1, 2, 3, 4]
  end

  it "lets one fiber in at a time, even if the fibers wait inside" do
    inside = 0
    most = 0
    Heddle.run do
      mutex = Mutex.new
      20.times do
        Fiber.schedule do
          mutex.synchronize do
            most = [most, inside += 1].max
            sleep(0)
            inside -= 1
          end
        end
      end
    end
    expect([most, inside]).to eq [1, 0]
  end

  it "is unlocked by a fiber that ends with an error inside" do
    locked = Heddle.run do
      mutex = Mutex.new
      Fiber.schedule do
        mutex.synchronize do
          sleep(0)
          raise "inside"
        end
      rescue RuntimeError
        nil
      end
      mutex.synchronize { :locked }
    end
    expect(locked).to eq :locked
  end

  it "raises ThreadError in a fiber that locks it twice" do
    mutex = Mutex.new
    expect { Heddle.run { mutex.synchronize { mutex.lock } } }.to raise_error(ThreadError, /deadlock/)
  end

  it "raises ThreadError in a fiber that unlocks another fiber's mutex" do
    expect do
      Heddle.run do
        mutex = Mutex.new
        gate = Queue.new
        hold(mutex, gate)
        mutex.unlock
      ensure
        gate.push(:open)
      end
    end.to raise_error(ThreadError)
  end

  it "isn't waited for by try_lock" do
    tried = Heddle.run do
      mutex = Mutex.new
      gate = Queue.new
      hold(mutex, gate)
      mutex.try_lock.tap { gate.push(:open) }
    end
    expect(tried).to be false
  end

  it "passes from another thread to a fiber" do
    mutex = Mutex.new
    gate = Queue.new
    held = Queue.new
    holder = Thread.new do
      mutex.synchronize do
        held.push(true)
        gate.pop
      end
    end
    held.pop
    events = []
    Heddle.run do
      Fiber.schedule { mutex.synchronize { events << :locked } }
      events << :before
      gate.push(:open)
    end
    holder.join
    expect(events).to eq %i[before locked]
  end

  it "excludes the fibers of several threads from each other" do
    mutex = Mutex.new
    count = 0
    threads = Array.new(3) do
      scheduled_thread do
        20.times do
          Fiber.schedule do
            mutex.synchronize do
              before = count
              sleep(0)
              count = before + 1
            end
          end
        end
      end
    end
    threads.each(&:join)
    expect(count).to eq 60
  end

  it "is unlocked during Mutex#sleep, and locked again after it" do
    events = []
    Heddle.run do
      mutex = Mutex.new
      Fiber.schedule do
        mutex.synchronize do
          mutex.sleep(0.005)
          events << [:slept, mutex.owned?]
        end
      end
      mutex.synchronize { events << :meanwhile }
    end
    expect(events).to eq [:meanwhile, [:slept, true]]
  end
end
