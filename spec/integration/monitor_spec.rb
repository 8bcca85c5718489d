# frozen_string_literal: true

require "monitor"

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
    entered = Heddle.run do
      monitor = Monitor.new
      Fiber.schedule { monitor.synchronize { :other } }
      monitor.synchronize do
        sleep(0.001)
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
    expect(took).to be_between(0.02, 10)
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
