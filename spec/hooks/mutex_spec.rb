# frozen_string_literal: true

require "monitor"

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
    virtually do
      mutex = Mutex.new
      Fiber.schedule do
        mutex.synchronize do
          mutex.sleep(1)
          events << [:slept, mutex.owned?]
        end
      end
      mutex.synchronize { events << :meanwhile }
    end
    expect(events).to eq [:meanwhile, [:slept, true]]
  end
end

RSpec.describe "Monitor in fibers" do
  it "lets one fiber in at a time" do
    monitor = Monitor.new
    inside = 0
    most = 0
    Heddle.run do
      10.times do
        Fiber.schedule do
          monitor.synchronize do
            most = [most, inside += 1].max
            sleep(0)
            inside -= 1
          end
        end
      end
    end
    expect(most).to eq 1
  end

  it "can be entered again by the fiber that is inside, after it has waited there" do
    entered = virtually do
      monitor = Monitor.new
      Fiber.schedule { monitor.synchronize { :other } }
      monitor.synchronize do
        sleep(1)
        monitor.synchronize { :again }
      end
    end
    expect(entered).to eq :again
  end

  it "has conditions that fibers wait for and signal" do
    items = []
    received = []
    Heddle.run do
      monitor = Monitor.new
      filled = monitor.new_cond
      Fiber.schedule do
        3.times do
          monitor.synchronize do
            filled.wait_while { items.empty? }
            received << items.shift
          end
        end
      end
      3.times do |number|
        monitor.synchronize do
          items << number
          filled.signal
        end
        sleep(0)
      end
    end
    expect(received).to eq [0, 1, 2]
  end

  it "has conditions whose wait ends after a timeout" do
    took = seconds do
      Heddle.run do
        monitor = Monitor.new
        condition = monitor.new_cond
        monitor.synchronize { condition.wait(0.02) }
      end
    end
    expect(took).to be >= 0.02
  end

  it "has conditions that a thread signals" do
    done = Heddle.run do
      monitor = Monitor.new
      condition = monitor.new_cond
      finished = false
      worker = Thread.new do
        monitor.synchronize do
          finished = true
          condition.broadcast
        end
      end
      monitor.synchronize { condition.wait_until { finished } }
      worker.join
      finished
    end
    expect(done).to be true
  end
end
