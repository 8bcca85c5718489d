# frozen_string_literal: true

require "socket"
require "tempfile"

RSpec.describe Heddle::Scheduler, "#io_wait" do
  def io_wait(io, events, timeout)
    Fiber.scheduler.io_wait(io, events, timeout)
  end

  it "returns the event that occurred" do
    events = IO.pipe do |reader, writer|
      Heddle.run do
        Fiber.schedule { writer.write("x") }
        io_wait(reader, IO::READABLE, nil)
      end
    end
    expect(events).to eq IO::READABLE
  end

  it "returns an Integer for an IO that is ready already" do
    events = IO.pipe { |_reader, writer| Heddle.run { io_wait(writer, IO::WRITABLE, nil) } }
    expect(events).to eq IO::WRITABLE
  end

  it "returns the one of two events that is ready" do
    events = UNIXSocket.pair.then do |one, other|
      Heddle.run { io_wait(one, IO::READABLE | IO::WRITABLE, 10) }.tap { [one, other].each(&:close) }
    end
    expect(events & IO::WRITABLE).to eq IO::WRITABLE
  end

  it "returns false when the timeout expires, and not before" do
    answer = :nothing_yet
    took = seconds do
      answer = IO.pipe { |reader, _writer| Heddle.run { io_wait(reader, IO::READABLE, 0.02) } }
    end
    expect([answer, took]).to match [false, be >= 0.02]
  end

  it "returns the event that came in time, although a fiber then computes until the timeout has expired", :regression do
    events = nil
    IO.pipe do |reader, writer|
      Heddle.run do
        writer.write("x")
        Fiber.schedule { events = io_wait(reader, IO::READABLE, 0.02) }
        Heddle.shield { Computing.compute_for(0.04) }
      end
    end
    expect(events).to eq IO::READABLE
  end

  # Returns what a wait with this limit gives in a process that stops meanwhile, gets its event, and continues after the
  # limit. Nil if the limit was over before the stop.
  define_method(:wait_while_stopped) do |limit|
    continued = nil
    output, = run_ruby(<<~RUBY) do |pid, input|
      require "heddle"
      require #{Settling::PATH.inspect}
      main = Thread.current
      stopper = Thread.new { Settling.one(main) || Process.kill(:STOP, Process.pid) }
      Heddle.run do
        event = $stdin.wait_readable(#{limit})
        puts event ? :event : :timeout, Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
      stopper.join
    RUBY
      sleep(0.001) until File.read("/proc/#{pid}/stat").match?(/\) T /)
      input.write("x")
      sleep(limit)
      continued = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Process.kill(:CONT, pid)
    end
    result, ended = output.split
    result if Float(ended) >= continued
  end

  it "returns the event that came while the process was stopped, although the timeout has expired", :regression do
    result = (0..).lazy.filter_map { |power| wait_while_stopped(0.2 * (2**power)) }.first
    expect(result).to eq "event"
  end

  it "returns false at once with a timeout of 0" do
    expect(IO.pipe { |reader, _writer| Heddle.run { io_wait(reader, IO::READABLE, 0) } }).to be false
  end

  it "returns the events that are ready with a timeout of 0" do
    events = IO.pipe do |reader, writer|
      writer.write("x")
      Heddle.run { io_wait(reader, IO::READABLE, 0) }
    end
    expect(events).to eq IO::READABLE
  end

  it "uses the IO's own timeout when it is given none" do
    answer = IO.pipe do |reader, _writer|
      reader.timeout = 0.005
      Heddle.run { io_wait(reader, IO::READABLE, nil) }
    rescue IO::TimeoutError
      false
    end
    expect(answer).to be false
  end

  it "makes a read raise IO::TimeoutError when the IO's own timeout expires" do
    expect do
      IO.pipe do |reader, _writer|
        reader.timeout = 0.005
        Heddle.run { reader.read(1) }
      end
    end.to raise_error(IO::TimeoutError)
  end

  it "makes a write raise IO::TimeoutError when the IO's own timeout expires" do
    expect do
      IO.pipe do |_reader, writer|
        writer.timeout = 0.005
        Heddle.run { writer.write(Waits::MORE_THAN_A_PIPE_HOLDS) }
      end
    end.to raise_error(IO::TimeoutError)
  end

  it "continues to wait after an unrelated wake-up" do
    answer = IO.pipe do |reader, writer|
      Heddle.run do
        answers = Queue.new
        fiber = Fiber.schedule { answers.push(io_wait(reader, IO::READABLE, nil)) }
        3.times do
          Fiber.scheduler.unblock(:something_else, fiber)
          sleep(0)
        end
        expect(answers).to be_empty
        writer.write("x")
        answers.pop
      end
    end
    expect(answer).to eq IO::READABLE
  end

  it "accepts a temporary IO that was made from a descriptor and has no other reference" do
    answer = IO.pipe do |reader, writer|
      Heddle.run do
        answers = Queue.new
        Fiber.schedule { answers.push(io_wait(IO.for_fd(reader.fileno, autoclose: false), IO::READABLE, nil)) }
        3.times { GC.start }
        writer.write("x")
        answers.pop
      end
    end
    expect(answer).to eq IO::READABLE
  end

  it "serves two IOs that share a descriptor" do
    answers = IO.pipe do |reader, writer|
      Heddle.run do
        queue = Queue.new
        2.times do
          io = IO.for_fd(reader.fileno, autoclose: false)
          Fiber.schedule { queue.push(io_wait(io, IO::READABLE, nil)) }
        end
        writer.write("x")
        Array.new(2) { queue.pop }
      end
    end
    expect(answers).to eq [IO::READABLE, IO::READABLE]
  end

  it "serves several fibers that wait for the same event of one IO" do
    answers = IO.pipe do |reader, writer|
      Heddle.run do
        queue = Queue.new
        5.times { Fiber.schedule { queue.push(io_wait(reader, IO::READABLE, nil)) } }
        writer.write("x")
        Array.new(5) { queue.pop }
      end
    end
    expect(answers).to eq [IO::READABLE] * 5
  end

  it "serves a reader and a writer of one socket" do
    order = []
    one, other = UNIXSocket.pair
    Heddle.run do
      Fiber.schedule do
        io_wait(one, IO::READABLE, nil)
        order << :readable
      end
      Fiber.schedule do
        io_wait(one, IO::WRITABLE, nil)
        order << :writable
      end
      pass_until { order.any? }
      other.write("x")
    end
    [one, other].each(&:close)
    expect(order).to eq %i[writable readable]
  end

  it "continues one fiber's wait when another fiber's wait for the same IO times out" do
    answers = IO.pipe do |reader, writer|
      Heddle.run do
        long = Queue.new
        short = Queue.new
        Fiber.schedule { long.push(io_wait(reader, IO::READABLE, 60)) }
        Fiber.schedule { short.push(io_wait(reader, IO::READABLE, 0.005)) }
        first = short.pop
        writer.write("x")
        [first, long.pop]
      end
    end
    expect(answers).to eq [false, IO::READABLE]
  end

  it "reports a regular file as ready, for either event" do
    answers = Tempfile.create("heddle") do |file|
      Heddle.run { [IO::READABLE, IO::WRITABLE].map { |event| io_wait(file, event, nil) } }
    end
    expect(answers).to eq [IO::READABLE, IO::WRITABLE]
  end

  it "reports the null device as ready" do
    expect(File.open(File::NULL) { |null| Heddle.run { io_wait(null, IO::READABLE, nil) } }).to eq IO::READABLE
  end

  it "reports the end of a pipe as readable" do
    answer = IO.pipe do |reader, writer|
      Heddle.run do
        Fiber.schedule { writer.close }
        io_wait(reader, IO::READABLE, nil)
      end
    end
    expect(answer).to eq IO::READABLE
  end

  it "ends when the reader of a full pipe closes it" do
    answer = IO.pipe do |reader, writer|
      Heddle.run do
        nil until writer.write_nonblock("x" * 4096, exception: false) == :wait_writable
        answers = Queue.new
        Fiber.schedule { answers.push(io_wait(writer, IO::WRITABLE, nil)) }
        reader.close
        answers.pop
      end
    end
    expect(answer & IO::WRITABLE).to eq IO::WRITABLE
  end

  it "raises IOError for an IO that is closed" do
    reader, writer = IO.pipe
    [reader, writer].each(&:close)
    expect { Heddle.run { io_wait(reader, IO::READABLE, nil) } }.to raise_error(IOError)
  end
end
