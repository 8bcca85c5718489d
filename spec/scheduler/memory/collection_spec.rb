# frozen_string_literal: true

RSpec.describe "Garbage collection" do
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
        Fiber.schedule { received << :slept.tap { sleep(a_moment) } }
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
    counted = in_child do
      count = 0
      Heddle.run do
        100.times do
          100.times { Fiber.schedule { count += 1 } }
          sleep(0)
        end
      end
      count
    end
    expect(counted).to eq 10_000
  end

  it "collects schedulers that were never used" do
    in_use = -> { GC.start || Dir.children("/proc/self/fd").size }
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    before = in_use.call
    # Not many at a time: a process may have 1024 descriptors, and a user 80 rings, on most machines.
    20.times do
      20.times { Heddle::Scheduler.new }
      GC.start
    end
    expect(in_use.call).to be < before + 100
  end

  # A scheduler opens several descriptors. Which of them is the first that it does not get depends on the limit.
  [63, 64].each do |limit|
    it "collects schedulers that were never used when no descriptor of #{limit} is left", :regression do
      expect(printed(<<~RUBY, preamble: "require 'heddle'\n")).to eq "opened\n"
        Process.setrlimit(:NOFILE, #{limit})
        200.times { Heddle::Scheduler.new }
        puts "opened"
      RUBY
    end
  end

  it "leaves no descriptor of a scheduler that was used" do
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    expect do
      50.times { Heddle.run { sleep(a_moment) } }
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
        until_others_wait
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
