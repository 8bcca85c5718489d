# frozen_string_literal: true

# Known traps of the hook interface. The tag `trap:` is the number of the trap.
RSpec.describe "A scheduler under garbage collection" do
  # Schedules a fiber to which only the scheduler refers.
  def schedule_unreferenced(log, name, &wait)
    Fiber.schedule do
      log << [name, wait.call]
    end
    nil
  end

  # Overwrites the machine stack, so that no reference to a fiber stays there by chance, and collects.
  def collect
    Fiber.new { 50.times { |number| Array.new(number) { +"noise" } } }.resume
    3.times { GC.start }
  end

  it "keeps fibers that wait in Ruby's own wait lists", trap: 21 do
    log = []
    Heddle.run do
      queue = Queue.new
      mutex = Mutex.new
      condition = ConditionVariable.new
      thread_gate = Queue.new
      thread = Thread.new { thread_gate.pop }
      mutex.synchronize do
        schedule_unreferenced(log, :queue) { queue.pop }
        schedule_unreferenced(log, :thread) { thread.value }
        schedule_unreferenced(log, :mutex) { mutex.synchronize { 1 } }
      end
      collect
      other = Mutex.new
      schedule_unreferenced(log, :condition) { other.synchronize { condition.wait(other) && 2 } }
      collect
      queue.push(3)
      condition.signal
      thread_gate.push(4)
    end
    expect(log).to contain_exactly([:queue, 3], [:thread, 4], [:mutex, 1], [:condition, 2])
  end

  it "keeps fibers that wait for I/O, for a time or for a process", trap: 21 do
    log = []
    IO.pipe do |reader, writer|
      Heddle.run do
        schedule_unreferenced(log, :read) { reader.gets }
        schedule_unreferenced(log, :sleep) { sleep(a_moment) && :slept }
        schedule_unreferenced(log, :process) { `sleep #{a_moment}; echo done` }
        collect
        writer.puts("line")
      end
    end
    expect(log).to contain_exactly([:read, "line\n"], %i[sleep slept], [:process, "done\n"])
  end

  it "keeps a fiber that waits in a generator, and the fiber that has resumed it", trap: 21 do
    log = []
    Heddle.run do
      queue = Queue.new
      schedule_unreferenced(log, :generator) { Enumerator.new { |yielder| yielder << queue.pop }.next }
      collect
      queue.push(:item)
    end
    expect(log).to eq [%i[generator item]]
  end

  it "runs the ensure of every waiting fiber at the end of its thread", trap: 22 do
    ensured = Queue.new
    thread = scheduled_thread do
      10.times do |number|
        Fiber.schedule do
          sleep
        ensure
          ensured.push(number)
        end
      end
    end
    until_asleep(thread)
    thread.kill.join
    expect(ensured.size).to eq 10
  end

  it "finds the objects that fibers wait for after they were moved", trap: 23, gc: :compact do
    log = []
    IO.pipe do |reader, writer|
      Heddle.run do
        buffers = Array.new(100) { +"garbage" }
        schedule_unreferenced(log, :read) { reader.readpartial(10, +"") }
        schedule_unreferenced(log, :sleep) { sleep(a_moment) && :slept }
        schedule_unreferenced(log, :timeout) { Queue.new.pop(timeout: 0.005).inspect }
        buffers.clear
        GC.compact
        writer.write("bytes")
      end
    end
    expect(log).to contain_exactly([:read, "bytes"], %i[sleep slept], [:timeout, "nil"])
  end

  it "closes unreferenced IOs and runs finalizers without disturbing the running fiber", trap: 24 do
    finalized = Queue.new
    ended = []
    Heddle.run do
      5.times do |number|
        Fiber.schedule do
          20.times do
            IO.pipe
            ObjectSpace.define_finalizer(Object.new, proc { finalized.push(true) })
            sleep(0)
          end
          GC.start
          ended << number
        end
      end
    end
    expect([ended.sort, finalized]).to match [[0, 1, 2, 3, 4], have_attributes(size: be_positive)]
  end
end
