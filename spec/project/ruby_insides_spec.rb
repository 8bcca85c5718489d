# frozen_string_literal: true

require "timeout"

# What Heddle knows of Ruby's internals, which Ruby doesn't document. docs/internals/ruby-insides.md says what depends
# on each of these facts, and what happens as long as one of them is wrong.
RSpec.describe "Ruby's internals" do
  def known
    Heddle.const_get(:Native).insides
  end

  # Returns the message of the error that the block raises.
  def message_of(error)
    yield
    nil
  rescue error => e
    e.message
  end

  it "have a version of the interface that Heddle knows" do
    header = File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby", "fiber", "scheduler.h")

    expect(File.read(header)[/RUBY_FIBER_SCHEDULER_VERSION (\d+)/, 1].to_i).to be_between(2, 5)
  end

  describe "the message of FiberError" do
    it "is the one that Heddle expects for a switch to a fiber that has resumed another" do
      outer = Fiber.new { Fiber.new { outer.transfer }.resume }

      expect(message_of(FiberError) { outer.resume }).to include(*known[:refused_transfer])
    end

    it "is the one that Heddle expects for a switch to a fiber that has yielded" do
      fiber = Fiber.new { Fiber.yield }
      fiber.resume

      expect(message_of(FiberError) { fiber.transfer }).to include(*known[:refused_transfer])
    end

    it "is the one that Heddle expects for a fiber that can't yield" do
      expect(Thread.new { message_of(FiberError) { Fiber.yield } }.value).to include(*known[:refused_yield])
    end

    it "is the one that Heddle expects for a fiber that was not initialized" do
      expect([message_of(FiberError) { Fiber.allocate.alive? }]).to eq known[:uninitialized]
    end

    it "is the one that Heddle expects for a fiber that gets no stack" do
      output, = run_ruby(<<~RUBY)
        Process.setrlimit(Process::RLIMIT_AS, 1 << 30)
        fibers = []
        begin
          loop { fibers << Fiber.new { Fiber.yield }.tap(&:resume) }
        rescue FiberError => e
          fibers.clear
          puts e.message
        end
      RUBY

      expect(known[:no_stack]).to include(be_a(String).and(satisfy { |words| output.include?(words) }))
    end
  end

  it "raise in a thread whose IO is closed what Heddle raises in a fiber" do
    IO.pipe do |reader, _|
      thread = Thread.new { message_of(IOError) { reader.read } }
      until_asleep(thread)
      reader.close

      expect([thread.value]).to eq known[:closed]
    end
  end

  it "raise in a thread whose IO takes too long what Heddle raises in a fiber" do
    IO.pipe do |reader, _|
      reader.timeout = 0.001

      expect([message_of(IO::TimeoutError) { reader.read }]).to eq known[:timed_out]
    end
  end

  it "describe any TracePoint by the hook that runs, as Heddle expects" do
    other = TracePoint.new(:line) { nil }
    described = nil
    TracePoint.new(:raise) { described = other.inspect }.enable { message_of(ArgumentError) { Integer("none") } }

    expect(described).to start_with(*known[:raise_hook])
  end

  it "show a method written in C, and its name, as Heddle expects" do
    expect(known).to include(native_frame: true, frame_name: "Heddle::Native.insides")
  end

  it "keep a thread's pending exceptions, and its masks, in hidden Arrays that it marks" do
    expect(Thread.new { known }.value).to include(pending_list: true, mask_stack: true)
  end

  it "pass a buffer to io_read and io_write that Heddle recognizes as one that stays in place" do
    seen = []
    scheduler = Class.new(Heddle::Scheduler) do
      define_method(:io_read) do |io, buffer, *rest|
        seen << Heddle.const_get(:Native).pinned?(buffer)
        super(io, buffer, *rest)
      end
      define_method(:io_write) do |io, buffer, *rest|
        seen << Heddle.const_get(:Native).pinned?(buffer)
        super(io, buffer, *rest)
      end
    end
    Thread.new do
      Fiber.set_scheduler(scheduler.new)
      Fiber.schedule { IO.pipe { |reader, writer| (writer.sync = true) && (writer << "x") && reader.readpartial(1) } }
    end.join

    expect(seen.uniq).to eq [true]
  end

  it "do not make a program's own buffer look like such a buffer" do
    expect(Heddle.const_get(:Native).pinned?(IO::Buffer.new(8))).to be false
  end

  it "report a thread that was killed as aborting" do
    status = nil
    thread = Thread.new do
      sleep
    ensure
      status = Thread.current.status
    end
    until_asleep(thread)
    thread.kill.join

    expect(status).to eq "aborting"
  end

  it "print a fiber's address as Heddle prints it" do
    expect(Fiber.current.inspect).to match(/\A#<Fiber:0x\h+ /)
  end

  it "return for a signal without a handler what Heddle expects" do
    output, = run_ruby('puts trap("USR2", "DEFAULT")')

    expect(output).to eq("DEFAULT\n").or eq("SYSTEM_DEFAULT\n")
  end

  it "have the methods that Heddle refers to by name" do
    known_methods = [[Kernel, :sleep], [IO, :sysread], [IO, :syswrite], [Integer, :/], [Integer, :%], [Integer, :div],
                     [Integer, :divmod], [Integer, :modulo], [Integer, :remainder], [IO::Buffer, :copy]]

    expect(known_methods).to all(satisfy { |owner, name| owner.instance_method(name).owner == owner })
  end
end
