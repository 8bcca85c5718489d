# frozen_string_literal: true

RSpec.describe "A wake-up from another thread" do
  it "ends a scheduler's sleep in the kernel" do
    main = Thread.current
    woken = Heddle.run do
      queue = Queue.new
      waker = Thread.new do
        until_asleep(main)
        queue.push(:woken)
      end
      queue.pop.tap { waker.join }
    end
    expect(woken).to eq :woken
  end

  it "ends a scheduler's sleep until a distant timer" do
    main = Thread.current
    woken = Heddle.run do
      sleeper = Fiber.schedule { sleep(60) }
      queue = Queue.new
      waker = Thread.new do
        until_asleep(main)
        queue.push(:woken)
      end
      queue.pop.tap do
        waker.join
        sleeper.kill
      end
    end
    expect(woken).to eq :woken
  end

  it "ends a scheduler's wait for I/O" do
    main = Thread.current
    woken = IO.pipe do |reader, writer|
      Heddle.run do
        Fiber.schedule { reader.read(1) }
        queue = Queue.new
        waker = Thread.new do
          until_asleep(main)
          queue.push(:woken)
        end
        queue.pop.tap do
          waker.join
          writer.write("x")
        end
      end
    end
    expect(woken).to eq :woken
  end

  it "isn't lost while another fiber still computes" do
    woken = Heddle.run do
      queue = Queue.new
      popped = Queue.new
      Fiber.schedule { popped.push(queue.pop) }
      # The thread pushes before this fiber has parked: a native join doesn't switch fibers.
      Fiber.blocking { Thread.new { queue.push(:kept) }.join }
      popped.pop
    end
    expect(woken).to eq :kept
  end

  it "isn't lost among many from many threads" do
    received = []
    Heddle.run do
      queues = Array.new(8) { Queue.new }
      queues.each_with_index do |queue, number|
        Fiber.schedule { 200.times { received << [number, queue.pop] } }
      end
      threads = queues.map { |queue| Thread.new { 200.times { |item| queue.push(item) } } }
      threads.each(&:join)
    end
    expect(received).to match_array [*0...8].product([*0...200])
  end

  it "comes from each of many threads that push into one queue" do
    sum = Heddle.run do
      queue = Queue.new
      threads = Array.new(10) { Thread.new { 100.times { |number| queue.push(number) } } }
      Array.new(1000) { queue.pop }.sum.tap { threads.each(&:join) }
    end
    expect(sum).to eq 10 * (0...100).sum
  end

  it "wakes the right fibers of several schedulers" do
    queues = Array.new(4) { Queue.new }
    threads = queues.map do |queue|
      scheduled_thread do
        values = []
        Fiber.schedule { 50.times { values << queue.pop } }
        values
      end
    end
    50.times { |number| queues.each_with_index { |queue, index| queue.push([index, number]) } }
    expect(threads.map(&:value)).to eq(Array.new(4) { |index| Array.new(50) { |number| [index, number] } })
  end

  it "lets the fibers of two threads wake each other" do
    there = Queue.new
    back = Queue.new
    other = scheduled_thread { Fiber.schedule { 500.times { back.push(there.pop + 1) } } }
    ball = Heddle.run do
      500.times.inject(0) do |value, _|
        there.push(value)
        back.pop
      end
    end
    other.join
    expect(ball).to eq 500
  end

  it "wakes the fibers of a thread whose root has ended" do
    gate = Queue.new
    events = []
    thread = scheduled_thread do
      Fiber.schedule { events << gate.pop }
      events << :root_ended
    end
    until_asleep(thread)
    gate.push(:woken)
    thread.join
    expect(events).to eq %i[root_ended woken]
  end

  it "for a fiber of a thread that has ended is ignored" do
    scheduler, fiber = with_scheduler { |own| [own, Fiber.schedule { :done }] }
    expect { Thread.new { scheduler.unblock(:late, fiber) }.join }.not_to raise_error
  end
end
