# frozen_string_literal: true

require "socket"
require "timeout"

RSpec.describe "Garbage collection" do
  # One program for each kind of wait.
  workload = {
    "sleep" => -> { [sleep(0.001), sleep(0)].size },
    "pipes" => lambda {
      IO.pipe do |reader, writer|
        Fiber.schedule do
          writer.write("bytes")
          writer.close
        end
        reader.read
      end
    },
    "sockets" => lambda {
      UNIXSocket.pair.then do |one, other|
        Fiber.schedule { other.write(other.readpartial(4)) }
        one.write("echo")
        one.readpartial(4).tap { [one, other].each(&:close) }
      end
    },
    "queues" => lambda {
      queue = Queue.new
      Fiber.schedule { queue.push("item") }
      queue.pop(timeout: 10)
    },
    "threads" => -> { Thread.new { "value" }.value },
    "timeouts" => lambda {
      begin
        Timeout.timeout(0.001) { sleep }
      rescue Timeout::Error
        "over"
      end
    },
    "names" => -> { Addrinfo.getaddrinfo("127.0.0.1", 1, nil, :STREAM).size },
    "files" => -> { File.read(__FILE__, 30) },
    "select" => -> { IO.pipe { |reader, writer| writer.write("x") && IO.select([reader]).flatten.size } },
    "raise" => lambda {
      result = []
      fiber = Fiber.schedule do
        sleep
      rescue RuntimeError => e
        result << e.message
      end
      fiber.raise("interrupted")
      result
    },
    "generators" => -> { Enumerator.new { |yielder| yielder << "made".tap { sleep(0.001) } }.next },
    # The scheduler doesn't suspend a fiber that has resumed another one: a fiber made for this purpose raises in it.
    "time limits during a generator's wait" => lambda {
      begin
        Heddle.cancel_after(0.001, RuntimeError) { Enumerator.new { sleep }.next }
      rescue RuntimeError => e
        e.class
      end
    },
    "trees" => -> { Heddle.await(Heddle.spin { "work" }) },
    "processes" => -> { Process.wait2(spawn("true")).last.success? },
    "locks" => lambda {
      lock = Mutex.new
      Fiber.schedule { lock.synchronize { sleep(0.001) } }
      lock.synchronize { "locked" }
    },
    "IOs that are closed" => lambda {
      seen = []
      IO.pipe do |reader, _|
        Fiber.schedule do
          reader.read
        rescue IOError => e
          seen << e.class
        end
        reader.close
        sleep(0.001)
      end
      seen
    },
    "fibers that are killed" => -> { Fiber.schedule { sleep }.kill.alive? }
  }
  results = {
    "sleep" => 2, "pipes" => "bytes", "sockets" => "echo", "queues" => "item", "threads" => "value",
    "timeouts" => "over", "names" => 1, "files" => "# frozen_string_literal: true\n", "select" => 1,
    "raise" => ["interrupted"], "generators" => "made", "time limits during a generator's wait" => RuntimeError,
    "trees" => ["work"], "processes" => true, "locks" => "locked", "IOs that are closed" => [IOError],
    "fibers that are killed" => false
  }

  workload.each do |name, work|
    it "at each allocation does no harm to #{name}", gc: :stress do
      expect(Heddle.run(&work)).to eq results.fetch(name)
    end

    it "with compaction does no harm to #{name}", gc: :compact do
      result = Heddle.run do
        gate = Queue.new
        Fiber.schedule { gate.pop }
        GC.start
        work.call.tap { gate.push(:open) }
      end
      expect(result).to eq results.fetch(name)
    end
  end

  it "at each allocation does no harm to a fiber that closes its scheduler", gc: :stress do
    expect(Heddle.run { Fiber.schedule { sleep(0.001) } && Fiber.scheduler.close }).to be_nil
  end

  # Only the fiber still refers to the scheduler.
  it "doesn't collect a scheduler that its thread has released while a fiber of the scheduler runs" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      def let_go
        Fiber.set_scheduler(nil)
        5.times { GC.start && Array.new(1000) { Object.new } }
      end
      20.times do
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule { let_go }
        end.join
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule { Heddle.without_preemption { let_go } }
        end.join
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            other = Fiber.new { let_go; Fiber.yield }
            other.resume
            other.raise("out") rescue nil
          end
        end.join
      end
      puts "done"
    RUBY

    expect([output, errors, status.success?]).to eq ["done\n", "", true]
  end

  it "moves the objects that fibers wait for, and the waits still end", gc: :compact do
    received = []
    IO.pipe do |reader, writer|
      Heddle.run do
        queue = Queue.new
        Fiber.schedule { received << queue.pop }
        Fiber.schedule { received << reader.readpartial(10) }
        Fiber.schedule { received << Process.wait2(spawn("true")).last.success? }
        Fiber.schedule { received << :slept.tap { sleep(0.005) } }
        GC.compact
        queue.push(:item)
        writer.write("bytes")
      end
    end
    expect(received).to contain_exactly(:item, "bytes", true, :slept)
  end

  it "doesn't collect waiting fibers without another reference" do
    woken = []
    Heddle.run do
      queue = Queue.new
      schedule = ->(number) { Fiber.schedule { woken << [number, queue.pop] } && nil }
      50.times(&schedule)
      3.times { GC.start }
      50.times { |number| queue.push(number) }
    end
    expect(woken).to match_array(Array.new(50) { |number| [number, number] })
  end

  it "doesn't collect fibers whose IO has no other reference" do
    lines = []
    Heddle.run do
      writers = Array.new(20) do |number|
        reader, writer = IO.pipe
        Fiber.schedule { lines << [number, reader.gets] }
        writer
      end
      GC.start
      writers.each_with_index { |writer, number| writer.puts(number) }
    end
    expect(lines).to match_array(Array.new(20) { |number| [number, "#{number}\n"] })
  end

  it "collects fibers that have ended" do
    alive = Heddle.run do
      before = GC.start || ObjectSpace.each_object(Fiber).count
      1000.times { Fiber.schedule { sleep(0) } }
      pass_until { GC.start || ObjectSpace.each_object(Fiber).count < before + 500 }
      ObjectSpace.each_object(Fiber).count - before
    end
    expect(alive).to be < 500
  end

  it "collects 10,000 fibers that were created and ended" do
    count = 0
    Heddle.run do
      100.times do
        100.times { Fiber.schedule { count += 1 } }
        sleep(0)
      end
    end
    expect(count).to eq 10_000
  end

  it "collects schedulers that were never used" do
    in_use = -> { GC.start || Dir.children("/proc/self/fd").size }
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    before = in_use.call
    10.times do
      1000.times { Heddle::Scheduler.new }
      GC.start
    end
    expect(in_use.call).to be < before + 100
  end

  it "leaves no descriptor of a scheduler that was used" do
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    expect do
      50.times { Heddle.run { sleep(0.0001) } }
      GC.start
    end.to change { Dir.children("/proc/self/fd").size }.by_at_most(5)
  end

  it "leaves no descriptor of a scheduler whose thread was killed" do
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    expect do
      50.times do
        thread = scheduled_thread { Fiber.schedule { sleep } }
        until_asleep(thread)
        thread.kill.join
      end
      GC.start
    end.to change { Dir.children("/proc/self/fd").size }.by_at_most(5)
  end

  it "closes an IO without references, while fibers wait for other IOs" do
    read = IO.pipe do |reader, writer|
      Heddle.run do
        bytes = Queue.new
        Fiber.schedule { bytes.push(reader.readpartial(10)) }
        drop = -> { 50.times { IO.pipe } }
        drop.call
        GC.start
        sleep(0.001)
        writer.write("bytes")
        bytes.pop
      end
    end
    expect(read).to eq "bytes"
  end

  it "doesn't collect a scheduler while a Method of it can be called" do
    hook = with_scheduler { |scheduler| scheduler.method(:unblock) }
    GC.start
    expect { hook.call(:anything, Fiber.current) }.not_to raise_error
  end
end
