# frozen_string_literal: true

require "fcntl"
require "socket"

RSpec.describe Heddle::Scheduler do
  # Calls the block with the scheduler, in one of the scheduler's fibers.
  def hook
    Heddle.run { yield Fiber.scheduler }
  end

  describe "given a closed IO" do
    let(:closed) { IO.pipe.each(&:close).first }

    it "raises IOError from io_wait" do
      expect { hook { |scheduler| scheduler.io_wait(closed, IO::READABLE, nil) } }
        .to raise_error(IOError, /closed stream/)
    end

    it "raises IOError from io_read" do
      expect { hook { |scheduler| scheduler.io_read(closed, IO::Buffer.new(8), 0, 0) } }
        .to raise_error(IOError, /closed stream/)
    end

    it "raises IOError from io_write" do
      expect { hook { |scheduler| scheduler.io_write(closed, IO::Buffer.new(8), 8, 0) } }
        .to raise_error(IOError, /closed stream/)
    end

    it "raises IOError from io_pread" do
      expect { hook { |scheduler| scheduler.io_pread(closed, IO::Buffer.new(8), 0, 8, 0) } }
        .to raise_error(IOError, /closed stream/)
    end

    it "raises IOError from io_pwrite" do
      expect { hook { |scheduler| scheduler.io_pwrite(closed, IO::Buffer.new(8), 0, 8, 0) } }
        .to raise_error(IOError, /closed stream/)
    end

    it "raises IOError from io_select" do
      expect { hook { |scheduler| scheduler.io_select([closed]) } }.to raise_error(IOError, /closed stream/)
    end
  end

  describe "given an object that isn't an IO" do
    {
      "io_wait" => ["not an IO", IO::READABLE, nil],
      "io_read" => ["not an IO", IO::Buffer.new(8), 0, 0],
      "io_write" => ["not an IO", IO::Buffer.new(8), 0, 0],
      "io_pread" => ["not an IO", IO::Buffer.new(8), 0, 0, 0],
      "io_pwrite" => ["not an IO", IO::Buffer.new(8), 0, 0, 0],
      "io_select" => [["not an IO"]]
    }.each do |name, arguments|
      it "raises TypeError from #{name}" do
        expect { hook { |scheduler| scheduler.public_send(name, *arguments) } }.to raise_error(TypeError)
      end
    end
  end

  # Descriptors that were closed without Ruby's knowledge.
  describe "given a bad descriptor" do
    # So high that nothing that is opened meanwhile gets it.
    let(:high) { 900 }

    def with_bad_descriptor
      descriptor = File.open(File::NULL, "r+") { |null| null.fcntl(Fcntl::F_DUPFD, high) }
      io = IO.for_fd(descriptor, "r+", autoclose: false)
      IO.for_fd(descriptor).close
      yield io
    end

    it "raises EBADF from a read" do
      expect { with_bad_descriptor { |io| Heddle.run { io.read(1) } } }.to raise_error(Errno::EBADF)
    end

    it "raises EBADF from a write" do
      expect { with_bad_descriptor { |io| Heddle.run { io.write("x") && io.flush } } }.to raise_error(Errno::EBADF)
    end

    it "raises EBADF from a wait" do
      expect { with_bad_descriptor { |io| Heddle.run { io.wait_readable } } }.to raise_error(Errno::EBADF)
    end

    it "raises EBADF from IO.select" do
      expect { with_bad_descriptor { |io| Heddle.run { IO.select([io], [], [], 60) } } }.to raise_error(Errno::EBADF)
    end
  end

  describe "given a duration" do
    {
      "kernel_sleep" => ->(scheduler, duration) { scheduler.kernel_sleep(duration) },
      "io_wait" => ->(scheduler, duration) { IO.pipe { |io,| scheduler.io_wait(io, IO::READABLE, duration) } },
      "io_select" => ->(scheduler, duration) { IO.pipe { |io,| scheduler.io_select([io], nil, nil, duration) } }
    }.each do |name, call|
      # The expected error is the one that sleep raises without a scheduler.
      [-1, -0.001, Float::NAN, "1", :soon].each do |duration|
        it "of #{duration.inspect} raises from #{name} what Ruby raises" do
          expected = error_of { sleep(duration) }

          expect { hook { |scheduler| call[scheduler, duration] } }.to raise_error(expected.class)
        end
      end
    end

    it "that is negative returns nil from Queue#pop, as without a scheduler" do
      expect(Heddle.run { Queue.new.pop(timeout: -1) }).to be_nil
    end

    it "that is negative returns nil from Thread#join, as without a scheduler" do
      gate = Queue.new
      thread = Thread.new { gate.pop }

      expect(Heddle.run { thread.join(-1) }).to be_nil
    ensure
      gate.close
      thread.join
    end

    it "that is infinite lets Queue#pop wait without a limit, as without a scheduler" do
      value = Heddle.run do
        queue = Queue.new
        Heddle.spin(background: true) { queue << :pushed }
        queue.pop(timeout: Float::INFINITY)
      end

      expect(value).to eq(:pushed)
    end

    it "that is infinite lets Thread#join wait without a limit, as without a scheduler" do
      joined = Heddle.run do
        gate = Queue.new
        thread = Thread.new { gate.pop }
        Heddle.spin(background: true) { gate.close }
        thread.join(Float::INFINITY) == thread
      end

      expect(joined).to be(true)
    end

    it "that is a String raises from Queue#pop what it raises without a scheduler" do
      expected = error_of { Queue.new.pop(timeout: "1") }

      expect { Heddle.run { Queue.new.pop(timeout: "1") } }.to raise_error(expected.class)
    end

    it "that is negative raises from a wait what it raises without a scheduler" do
      expect { Heddle.run { IO.pipe { |reader,| reader.wait_readable(-1) } } }.to raise_error(ArgumentError, /negative/)
    end

    it "that is negative raises from Mutex#sleep what it raises without a scheduler" do
      expect { Heddle.run { Mutex.new.then { |mutex| mutex.synchronize { mutex.sleep(-1) } } } }
        .to raise_error(ArgumentError, /negative/)
    end
  end

  describe "called from another thread" do
    {
      "kernel_sleep" => ->(scheduler) { scheduler.kernel_sleep(0) },
      "block" => ->(scheduler) { scheduler.block(:test, 0) },
      "io_wait" => ->(scheduler) { scheduler.io_wait($stderr, IO::WRITABLE, 0) },
      "io_read" => ->(scheduler) { scheduler.io_read($stdin, IO::Buffer.new(8), 0, 0) },
      "io_write" => ->(scheduler) { scheduler.io_write($stderr, IO::Buffer.new(8), 0, 0) },
      "io_select" => ->(scheduler) { scheduler.io_select([], [$stderr], [], 0) },
      "timeout_after" => ->(scheduler) { scheduler.timeout_after(1, Timeout::Error, "over") { nil } },
      "process_wait" => ->(scheduler) { scheduler.process_wait(-1, 0) },
      "address_resolve" => ->(scheduler) { scheduler.address_resolve("localhost") },
      "fiber" => ->(scheduler) { scheduler.fiber { nil } },
      "yield" => lambda(&:yield),
      "run" => lambda(&:run),
      "close" => lambda(&:close)
    }.each do |name, call|
      it "raises FiberError from #{name}" do
        error = hook { |scheduler| Thread.new { error_of { call[scheduler] } }.value }

        expect(error).to be_a(FiberError).and have_attributes(message: /across threads/)
      end
    end

    it "accepts unblock" do
      woken = false
      hook do |scheduler|
        sleeper = Fiber.schedule { woken = true if sleep }
        Thread.new { scheduler.unblock(:test, sleeper) }.join
      end

      expect(woken).to be(true)
    end

    it "accepts fiber_interrupt" do
      error = nil
      hook do |scheduler|
        sleeper = Fiber.schedule { error = error_of { sleep } }
        Thread.new { scheduler.fiber_interrupt(sleeper, IOError.new("interrupted")) }.join
      end

      expect(error).to be_a(IOError).and have_attributes(message: "interrupted")
    end
  end

  describe "told to wake a fiber" do
    it "that isn't a Fiber raises TypeError from unblock" do
      expect { hook { |scheduler| scheduler.unblock(:test, "not a fiber") } }.to raise_error(TypeError)
    end

    it "that isn't a Fiber raises TypeError from fiber_interrupt" do
      expect { hook { |scheduler| scheduler.fiber_interrupt("not a fiber", IOError.new) } }.to raise_error(TypeError)
    end

    it "that has ended does nothing" do
      result = hook do |scheduler|
        scheduler.unblock(:test, Fiber.schedule { nil })
        until_others_wait
        :goes_on
      end

      expect(result).to eq(:goes_on)
    end

    it "that no scheduler has scheduled does nothing" do
      result = hook do |scheduler|
        scheduler.unblock(:test, Fiber.new { nil })
        until_others_wait
        :goes_on
      end

      expect(result).to eq(:goes_on)
    end
  end

  describe "given a buffer" do
    let(:ends) { IO.pipe }

    after { ends.each(&:close) }

    {
      "that isn't one" => ["not a buffer", 0, 0, TypeError],
      "that is shorter than the length asked for" => [IO::Buffer.new(8), 9, 0, ArgumentError],
      "that ends before the offset" => [IO::Buffer.new(8), 0, 9, ArgumentError],
      "that ends between the offset and the length" => [IO::Buffer.new(8), 4, 5, ArgumentError],
      "that is to be read into at a negative length" => [IO::Buffer.new(8), -1, 0, RangeError],
      "that is to be read into at a negative offset" => [IO::Buffer.new(8), 0, -1, RangeError],
      "that is read-only" => [IO::Buffer.for("constant"), 1, 0, IO::Buffer::AccessError]
    }.each do |what, (buffer, length, offset, error)|
      it "#{what} raises #{error} from io_read" do
        ends.last.write("some data, so that there is nothing to wait for")

        expect { hook { |scheduler| scheduler.io_read(ends.first, buffer, length, offset) } }.to raise_error(error)
      end
    end

    it "that was freed raises from io_read, and doesn't crash" do
      freed = IO::Buffer.new(8).tap(&:free)

      expect { hook { |scheduler| scheduler.io_read(ends.first, freed, 1, 0) } }.to raise_error(StandardError)
    end
  end

  describe "given the wrong number of arguments" do
    {
      "io_wait" => 2, "io_read" => 2, "io_write" => 1, "io_pread" => 3, "io_pwrite" => 6, "io_select" => 0,
      "kernel_sleep" => 2, "block" => 0, "unblock" => 1, "timeout_after" => 0, "process_wait" => 1,
      "address_resolve" => 2, "fiber_interrupt" => 1, "yield" => 1, "run" => 1
    }.each do |name, count|
      it "raises ArgumentError from #{name}" do
        expect { hook { |scheduler| scheduler.public_send(name, *Array.new(count) { 0 }) } }
          .to raise_error(ArgumentError, /wrong number of arguments/)
      end
    end
  end

  it "raises for a process that is no child what Ruby raises" do
    expect { Heddle.run { Process.wait((2**22) + 7) } }.to raise_error(Errno::ECHILD)
  end

  it "raises TypeError for a process id that is no number" do
    expect { hook { |scheduler| scheduler.process_wait("1", 0) } }.to raise_error(TypeError)
  end

  [nil, 42, []].each do |name|
    it "raises TypeError for the host name #{name.inspect}" do
      expect { hook { |scheduler| scheduler.address_resolve(name) } }.to raise_error(TypeError)
    end
  end

  it "raises ArgumentError for a fiber without a block" do
    expect { hook(&:fiber) }.to raise_error(ArgumentError, /block/)
  end

  it "raises instead of crashing when it was allocated and never initialized" do
    output, _, status = run_ruby(<<~RUBY)
      require "heddle"
      scheduler = Heddle::Scheduler.allocate rescue (print "raised"; exit)
      begin
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { sleep(a_moment) }
        Fiber.set_scheduler(nil)
        print "worked"
      rescue StandardError
        print "raised"
      end
    RUBY

    expect([output, status.exited?]).to eq(["raised", true]).or eq(["worked", true])
  end

  it "is usable after each of these errors" do
    text = hook do |scheduler|
      error_of { scheduler.io_wait("not an IO", 1, nil) }
      error_of { scheduler.kernel_sleep(-1) }
      error_of { scheduler.unblock(:test, nil) }
      error_of { scheduler.io_select([IO.pipe.each(&:close).first]) }
      error_of { scheduler.address_resolve(nil) }
      IO.pipe do |reader, writer|
        Heddle.spin(background: true) { writer.puts("usable") }
        reader.gets
      end
    end

    expect(text).to eq("usable\n")
  end
end

# In a process of its own, since a fault here ends Ruby.
RSpec.describe "Heddle::Scheduler", :regression do
  # These methods end the process or the scheduler, or close IOs of other examples.
  left_out = %i[initialize initialize_copy scheduler_close close run io_close fork]

  it "accepts any object for any argument of its methods, or raises", timeout: 60 do
    output, errors, status = run_ruby(<<~RUBY, timeout: 50)
      require "heddle"
      require "timeout"
      left_out = #{left_out.inspect}
      ended = Fiber.new {}.tap(&:resume)
      objects = [
        nil, -1, 2**70, Float::NAN, "x", [], {}, BasicObject.new, Object.new.freeze, Fiber.allocate, ended,
        Heddle::YieldingFiber.allocate, Fiber.new {}.freeze, IO.allocate, IO::Buffer.allocate, Mutex.new, Class.new
      ]
      native = Heddle.const_get(:Native)
      scheduler_class = Heddle::Scheduler
      hooks = scheduler_class.instance_methods(false) + scheduler_class.private_instance_methods(false) - left_out
      functions = native.singleton_methods(false)
      # Of a function that concerns a scheduler, the other arguments as well.
      kinds = { hook: hooks, function: functions, with_scheduler: functions }
      calls = 0
      kinds.flat_map { |kind, names| names.map { |name| [kind, name] } }.each do |kind, name|
        Heddle.run do
          receiver = kind == :hook ? Fiber.scheduler : native
          arity = receiver.method(name).arity
          first = kind == :with_scheduler ? [Fiber.scheduler] : []
          (arity.zero? ? [nil] : objects).each do |object|
            calls += 1
            arguments = first + [object] * (arity.negative? ? 2 : [arity - first.size, 0].max)
            Timeout.timeout(0.002) { receiver.__send__(name, *arguments) { nil } }
          rescue Exception
            nil
          end
        end
      rescue Exception
        nil
      end
      GC.start
      puts calls
    RUBY

    expect([errors[/\[BUG\].*|.*panicked.*\n.*/], status.success?, output.to_i]).to match [nil, true, be > 300]
  end
end
