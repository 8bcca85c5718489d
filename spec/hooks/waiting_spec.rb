# frozen_string_literal: true

require "io/wait"
require "socket"

RSpec.describe "A wait in", :regression do
  describe "IO.select over hundreds of descriptors" do
    # Counts the runs of the other fibers from the moment when a descriptor became ready until IO.select has returned.
    def runs_until_selected(descriptors, busy:)
      pipes = Array.new(descriptors) { IO.pipe }
      runs = 0
      selected = false
      Heddle.run do
        busy.times { Fiber.schedule { sleep(0) && runs += 1 until selected } }
        Fiber.schedule do
          pass_until { runs > busy }
          pipes.last.last.write("x")
          runs = 0
        end
        IO.select(pipes.map(&:first))
        selected = true
      end
      runs
    ensure
      pipes&.flatten&.each(&:close)
    end

    it "doesn't let the other fibers run once for each descriptor before it returns" do
      expect(runs_until_selected(300, busy: 3)).to be < 300
    end

    it "lets the other fibers run no more often than with a single descriptor" do
      expect(runs_until_selected(300, busy: 3)).to be <= runs_until_selected(1, busy: 3) + 200
    end
  end

  describe "ConditionVariable#wait" do
    # Delays the fiber between its entry in the condition's list and its sleep.
    let(:slow_to_sleep) do
      Class.new(Heddle::Scheduler) do
        attr_accessor :on_the_list, :signalled

        def kernel_sleep(*)
          Fiber.blocking do
            on_the_list.push(true)
            signalled.pop
          end
          super
        end
      end
    end

    def wait_for_early_signal(scheduler, mutex, condition)
      Thread.new do
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { mutex.synchronize { condition.wait(mutex) } }
      end
    end

    it "doesn't lose a signal that comes before the fiber sleeps" do
      mutex = Mutex.new
      condition = ConditionVariable.new
      scheduler = slow_to_sleep.new.tap { |made| made.on_the_list = Queue.new }
      scheduler.signalled = Queue.new
      thread = wait_for_early_signal(scheduler, mutex, condition)
      scheduler.on_the_list.pop
      mutex.synchronize { condition.signal }
      scheduler.signalled.push(true)
      expect(thread.join).to be thread
    ensure
      thread&.kill
    end
  end

  describe "IO#wait_readable" do
    it "returns nil when IO#timeout expires, also after read_nonblock" do
      ready = IO.pipe do |reader, _|
        reader.timeout = 0.02
        Heddle.run do
          reader.read_nonblock(1, exception: false)
          reader.wait_readable
        end
      end
      expect(ready).to be_nil
    end

    it "lets a later read raise IO::TimeoutError" do
      attempt = lambda do
        IO.pipe do |reader, _|
          reader.timeout = 0.02
          Heddle.run { reader.wait_readable || reader.readpartial(1) }
        end
      end
      expect(&attempt).to raise_error(IO::TimeoutError)
    end
  end

  describe "IO#sysread" do
    it "waits for a pipe that is empty" do
      read = IO.pipe do |reader, writer|
        Heddle.run do
          Fiber.schedule { sleep(0) && writer.write("late") }
          reader.sysread(10)
        end
      end
      expect(read).to eq "late"
    end

    it "waits for a socket without data" do
      left, right = UNIXSocket.pair
      read = Heddle.run do
        Fiber.schedule { sleep(0) && right.write("late") }
        left.sysread(10)
      end
      expect(read).to eq "late"
    ensure
      [left, right].each(&:close)
    end

    it "raises EOFError when the peer closes while it waits" do
      attempt = lambda do
        IO.pipe do |reader, writer|
          Heddle.run do
            Fiber.schedule { sleep(0) && writer.close }
            reader.sysread(10)
          end
        end
      end
      expect(&attempt).to raise_error(EOFError)
    end
  end

  describe "IO#syswrite" do
    it "waits for room in a pipe that is full" do
      written = IO.pipe do |reader, writer|
        fill(writer)
        Heddle.run do
          Fiber.schedule { sleep(0) && reader.readpartial(1 << 20) }
          writer.syswrite("late")
        end
      end
      expect(written).to eq 4
    end

    it "waits for room in a socket that is full" do
      left, right = UNIXSocket.pair
      fill(left)
      written = Heddle.run do
        Fiber.schedule { sleep(0) && IO.copy_stream(right, File::NULL) }
        left.syswrite("late").tap { left.close }
      end
      expect(written).to eq 4
    ensure
      [left, right].each(&:close)
    end
  end
end
