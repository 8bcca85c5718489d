# frozen_string_literal: true

RSpec.describe "Waiting for a thread in a fiber" do
  it "returns the thread's value" do
    expect(Heddle.run { Thread.new { :value }.value }).to eq :value
  end

  it "lets other fibers run meanwhile" do
    runs = 0
    Heddle.run do
      gate = Queue.new
      thread = Thread.new { gate.pop }
      Fiber.schedule { thread.join }
      5.times do
        runs += 1
        sleep(0)
      end
      gate.push(:open)
    end
    expect(runs).to eq 5
  end

  it "raises the thread's error in the fiber that joins it" do
    thread = Thread.new do
      Thread.current.report_on_exception = false
      raise ArgumentError, "of the thread"
    end
    expect { Heddle.run { thread.join } }.to raise_error(ArgumentError, "of the thread")
  end

  it "returns nil when the thread isn't done within the timeout, and not before" do
    gate = Queue.new
    thread = Thread.new { gate.pop }
    joined = :nothing_yet
    took = seconds { joined = Heddle.run { thread.join(0.02) } }
    gate.push(:open)
    expect([joined, took]).to match [nil, be >= 0.02]
  end

  it "returns the thread when it is done within the timeout" do
    thread = Thread.new { sleep(a_moment) }
    expect(Heddle.run { thread.join(60) }).to be thread
  end

  it "accepts a timeout that is a Rational" do
    gate = Queue.new
    thread = Thread.new { gate.pop }
    joined = Heddle.run { thread.join(0.005r) }
    gate.push(:open)
    expect(joined).to be_nil
  end

  it "doesn't wait with a timeout of 0" do
    gate = Queue.new
    thread = Thread.new { gate.pop }
    joined = Heddle.run { thread.join(0) }
    gate.push(:open)
    expect(joined).to be_nil
  end

  it "is possible for many fibers at once" do
    values = []
    Heddle.run do
      gate = Queue.new
      thread = Thread.new { gate.pop }
      5.times { Fiber.schedule { values << thread.value } }
      gate.push(:done)
    end
    expect(values).to eq [:done] * 5
  end

  it "is possible for many threads in one fiber" do
    expect(Heddle.run { Array.new(20) { |number| Thread.new { number } }.map(&:value) }).to eq [*0...20]
  end

  it "waits for a thread that runs fibers of its own" do
    order = Queue.new
    Heddle.run do
      inner = scheduled_thread do
        Fiber.schedule do
          sleep(a_moment)
          order.push(:inner)
        end
      end
      inner.join
      order.push(:joined)
    end
    expect(Array.new(order.size) { order.pop }).to eq %i[inner joined]
  end

  it "isn't ended by an unrelated wake-up" do
    result = Heddle.run do
      gate = Queue.new
      thread = Thread.new { gate.pop }
      results = Queue.new
      joining = Fiber.schedule { results.push(thread.value) }
      3.times do
        Fiber.scheduler.unblock(Object.new, joining)
        sleep(0)
      end
      gate.push(:real)
      results.pop
    end
    expect(result).to eq :real
  end

  it "ends if the thread ends while an unrelated wake-up is told from its end" do
    joined = false
    Heddle.run do
      gate = Queue.new
      thread = Thread.new { gate.pop }
      waiter = Fiber.schedule do
        thread.join
        joined = true
      end
      trace = TracePoint.new(:c_return) do |event|
        next unless event.method_id == :alive? && event.self.equal?(thread)

        trace.disable
        gate.push(:open)
        Thread.pass while thread.status
      end
      trace.enable(target_thread: Thread.current)
      Fiber.scheduler.unblock(thread, waiter)
      # The waiter runs, asks, and waits again.
      2.times { sleep(0) }
      trace.disable
      gate.push(:open)
      Heddle.stop(waiter) unless joined
    end
    expect(joined).to be true
  end

  it "returns a value during whose creation garbage was collected" do
    expect(Heddle.run { Thread.new { GC.start || "made" }.value }).to eq "made"
  end
end
