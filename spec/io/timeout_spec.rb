# frozen_string_literal: true

require "io/wait"
require "socket"

RSpec.describe "IO#timeout=" do
  let(:sockets) { UNIXSocket.pair }
  let(:left) { sockets.first }
  let(:right) { sockets.last }

  # What accept and recv raise. On 3.3 they try once more after the timeout, and raise the error of that attempt.
  let(:timed_out) do
    RUBY_VERSION < "3.4" ? an_instance_of(IO::TimeoutError).or(an_instance_of(Errno::EAGAIN)) : IO::TimeoutError
  end

  before { left.timeout = 0.02 }
  after { sockets.each { |socket| socket.close unless socket.closed? } }

  {
    "read" => ->(io) { io.read(1) },
    "gets" => lambda(&:gets),
    "readpartial" => ->(io) { io.readpartial(1) },
    "sysread" => ->(io) { io.sysread(1) },
    "syswrite" => ->(io) { loop { io.syswrite("x" * 65_536) } },
    "getc" => lambda(&:getc),
    "each_line" => ->(io) { io.each_line.to_a }
  }.each do |name, call|
    it "ends #{name} with IO::TimeoutError" do
      expect { Heddle.run { call[left] } }.to raise_error(IO::TimeoutError)
    end
  end

  it "ends write with IO::TimeoutError" do
    expect { Heddle.run { left.write("x" * (4 << 20)) } }.to raise_error(IO::TimeoutError)
  end

  it "doesn't end a read that ends in time" do
    text = Heddle.run do
      left.timeout = 60
      Fiber.schedule { right.write("in time") }
      left.readpartial(100)
    end

    expect(text).to eq("in time")
  end

  it "starts anew for each wait" do
    left.timeout = 60
    lines = virtually do
      Fiber.schedule do
        5.times do |i|
          sleep(50)
          right.puts(i)
        end
      end
      Array.new(5) { left.gets.to_i }
    end

    expect(lines).to eq([0, 1, 2, 3, 4])
  end

  it "leaves the IO usable after it expired" do
    text = Heddle.run do
      begin
        left.read(4)
      rescue IO::TimeoutError
        right.write("late")
      end
      left.read(4)
    end

    expect(text).to eq("late")
  end

  it "keeps what was read before it expired" do
    text = Heddle.run do
      right.write("half a line")
      begin
        left.gets
      rescue IO::TimeoutError
        right.write(" and the rest\n")
      end
      left.gets
    end

    expect(text).to end_with(" and the rest\n")
  end

  it "of 0 lets a read take what is there, and raises if nothing is" do
    left.timeout = 0
    right.write("there")
    results = Heddle.run do
      Array.new(2) do
        left.readpartial(100)
      rescue IO::TimeoutError
        :raised
      end
    end

    expect(results).to eq(["there", :raised])
  end

  # The writer and the reader are woken by the same poll, and the writer runs first.
  it "lets a read take what is there when it expires" do
    left.timeout = 10
    text = virtually do
      Fiber.schedule do
        sleep(10)
        right.write_nonblock("there")
      end
      left.readpartial(100)
    end

    expect(text).to eq("there")
  end

  it "lets a write fill the room that is there when it expires" do
    left.timeout = 10
    nil while left.write_nonblock("x" * 4096, exception: false) != :wait_writable
    written = virtually do
      Fiber.schedule do
        sleep(10)
        right.read_nonblock(1 << 20)
      end
      left.syswrite("there")
    end

    expect(written).to eq(5)
  end

  it "makes IO::Buffer#read and #write of a length of 0 return -Errno::ETIMEDOUT", :least_length do
    nil while left.write_nonblock("x" * 4096, exception: false) != :wait_writable
    results = Heddle.run { [IO::Buffer.new(8).read(left, 0), IO::Buffer.for("x").write(left, 0)] }

    expect(results).to eq([-Errno::ETIMEDOUT::Errno] * 2)
  end

  it "makes IO::Buffer#read of a greater length return -Errno::ETIMEDOUT", :least_length do
    expect(Heddle.run { IO::Buffer.new(8).read(left, 1) }).to eq(-Errno::ETIMEDOUT::Errno)
  end

  it "leaves no timer behind, whether it expires or not" do
    counts = Heddle.run do
      right.write("there")
      left.readpartial(100)
      expect { left.readpartial(100) }.to raise_error(IO::TimeoutError)
      state_counts
    end

    expect(counts).to include(timers: 0)
  end

  it "doesn't replace an exception that is raised into the reader" do
    left.timeout = 60
    raised = nil
    Heddle.run do
      reader = Fiber.schedule do
        left.readpartial(1)
      rescue KeyError => e
        raised = e
      end
      reader.raise(KeyError, "sent")
    end

    expect(raised).to be_a(KeyError)
  end

  it "makes a socket's read no other operation than one without a timeout" do
    limited, unlimited = [60, nil].map do |timeout|
      left.timeout = timeout
      Heddle.run do
        Fiber.schedule { right.write("x") }
        left.readpartial(1)
        Fiber.scheduler.stats[:operations].slice(:tried_count, :ready_count, :receive_count)
      end
    end

    expect(limited).to eq(unlimited)
  end

  it "of nil lets a read wait without a limit" do
    text = Heddle.run do
      left.timeout = nil
      Fiber.schedule do
        sleep(0.04) # at least
        right.write("late")
      end
      left.readpartial(100)
    end

    expect(text).to eq("late")
  end

  it "never expires early" do
    started = Clock.now
    begin
      Heddle.run { left.read(1) }
    rescue IO::TimeoutError
      elapsed = Clock.now - started
    end

    expect(elapsed).to be >= 0.02
  end

  it "lets other fibers run until it expires" do
    order = []
    Heddle.run do
      Fiber.schedule do
        left.read(1)
      rescue IO::TimeoutError
        order << :interrupted
      end
      order << :first
    end

    expect(order).to eq(%i[first interrupted])
  end

  it "raises in the fiber that reads, not in a fiber that reads another IO" do
    results = {}
    Heddle.run do
      other, into = IO.pipe
      Fiber.schedule do
        results[:other] = other.gets
        [other, into].each(&:close)
      end
      begin
        left.read(1)
      rescue IO::TimeoutError
        results[:interrupted] = true
        into.puts("undisturbed")
      end
    end

    expect(results).to eq({ interrupted: true, other: "undisturbed\n" })
  end

  it "doesn't apply to a wait with a timeout of its own" do
    ready = Heddle.run do
      Fiber.schedule do
        sleep(0.04) # at least
        right.write("x")
      end
      left.wait_readable(60)
    end

    expect(ready).to be(left)
  end

  it "makes a wait without a timeout of its own return nil" do
    expect(Heddle.run { left.wait_readable }).to be_nil
  end

  it "ends an accept with an error" do
    attempt = lambda do
      Heddle.run do
        TCPServer.open("127.0.0.1", 0) do |server|
          server.timeout = 0.02
          server.accept
        end
      end
    end

    expect(&attempt).to raise_error(timed_out)
  end

  it "ends a recv with an error" do
    expect { Heddle.run { left.recv(1) } }.to raise_error(timed_out)
  end

  it "ends a recv with the same error where ticks interrupt Heddle's system calls" do
    expect { Heddle.run(preempt: :all, ticker: :signal) { left.recv(1) } }.to raise_error(timed_out)
  end
end
