# frozen_string_literal: true

require "io/wait"
require "pty"
require "socket"

RSpec.describe "Closing an IO that a fiber waits for" do
  # Each entry is an IO to close, and a wait for it. The other end stays open, so that nothing else ends the wait.
  waits = {
    "IO#read" => [:pipe_reader, ->(io) { io.read(1) }],
    "IO#gets" => [:pipe_reader, ->(io) { io.gets }],
    "IO#readpartial" => [:pipe_reader, ->(io) { io.readpartial(1) }],
    "IO#wait_readable" => [:pipe_reader, ->(io) { io.wait_readable }],
    "IO#wait_readable with a timeout" => [:pipe_reader, ->(io) { io.wait_readable(60) }],
    "IO.select" => [:pipe_reader, ->(io) { IO.select([io]) }],
    "IO#write" => [:full_pipe_writer, ->(io) { io.write("x" * (1 << 20)) }],
    "IO#wait_writable" => [:full_pipe_writer, ->(io) { io.wait_writable }],
    "a socket's readpartial" => [:socket, ->(io) { io.readpartial(1) }],
    "a socket's recv" => [:socket, ->(io) { io.recv(1) }],
    "TCPServer#accept" => [:server, ->(io) { io.accept }],
    "UDPSocket#recvfrom" => [:udp_socket, ->(io) { io.recvfrom(1) }]
  }

  def open_io(kind)
    case kind
    when :pipe_reader then IO.pipe
    when :full_pipe_writer then IO.pipe.reverse.tap { |writer, _| fill(writer) }
    when :socket then UNIXSocket.pair
    when :server then [TCPServer.new("127.0.0.1", 0)]
    when :udp_socket then [UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }]
    end
  end

  # Yields the IO that is to be closed, and closes both ends afterwards.
  def with_io(kind)
    ends = open_io(kind)
    yield(*ends)
  ensure
    ends.each(&:close)
  end

  # Schedules a fiber that pushes the outcome of its wait into the queue.
  def waiting_fiber(outcomes, io, wait)
    Fiber.schedule do
      wait.call(io)
      outcomes.push(:not_interrupted)
    rescue IOError => e
      outcomes.push(e.class)
    end
  end

  waits.each do |name, (kind, wait)|
    context "in #{name}" do
      it "raises IOError when another fiber closes it" do
        outcome = with_io(kind) do |io|
          Heddle.run do
            outcomes = Queue.new
            waiting_fiber(outcomes, io, wait)
            io.close
            outcomes.pop
          end
        end
        expect(outcome).to be IOError
      end

      it "raises IOError when the root fiber closes it" do
        outcomes = Queue.new
        with_io(kind) do |io|
          with_scheduler do
            waiting_fiber(outcomes, io, wait)
            io.close
          end
        end
        expect(outcomes.pop(timeout: 0)).to be IOError
      end

      it "raises IOError when another thread closes it" do
        outcomes = Queue.new
        with_io(kind) do |io|
          waits = false
          thread = scheduled_thread { waiting_fiber(outcomes, io, wait).then { waits = true } }
          Thread.pass until waits
          until_asleep(thread)
          io.close
          thread.join
        end
        expect(outcomes.pop(timeout: 0)).to be IOError
      end
    end
  end

  it "returns to the fiber that closes it" do
    went_on = with_io(:pipe_reader) do |reader|
      Heddle.run do
        waiting_fiber(Queue.new, reader, :read.to_proc)
        reader.close
        :went_on
      end
    end
    expect(went_on).to eq :went_on
  end

  it "raises IOError in each of several fibers" do
    results = with_io(:pipe_reader) do |reader|
      Heddle.run do
        outcomes = Queue.new
        5.times { waiting_fiber(outcomes, reader, ->(io) { io.wait_readable }) }
        reader.close
        Array.new(5) { outcomes.pop }
      end
    end
    expect(results).to eq [IOError] * 5
  end

  it "raises IOError in a reader and in a writer of the same socket" do
    results = with_io(:socket) do |socket|
      Heddle.run do
        fill(socket)
        outcomes = Queue.new
        waiting_fiber(outcomes, socket, ->(io) { io.readpartial(1) })
        waiting_fiber(outcomes, socket, ->(io) { io.write("x" * (1 << 20)) })
        socket.close
        Array.new(2) { outcomes.pop }
      end
    end
    expect(results).to eq [IOError, IOError]
  end

  it "raises IOError in the fibers of several threads" do
    outcomes = Queue.new
    with_io(:pipe_reader) do |reader|
      threads = Array.new(3) { scheduled_thread { waiting_fiber(outcomes, reader, ->(io) { io.wait_readable }) } }
      threads.each { |thread| until_asleep(thread) }
      reader.close
      threads.each(&:join)
    end
    expect(Array.new(3) { outcomes.pop(timeout: 0) }).to eq [IOError] * 3
  end

  it "doesn't end waits for other IOs" do
    read = with_io(:pipe_reader) do |closed|
      with_io(:pipe_reader) do |reader, writer|
        Heddle.run do
          outcomes = Queue.new
          waiting_fiber(outcomes, closed, :getc.to_proc)
          bytes = Queue.new
          Fiber.schedule { bytes.push(reader.readpartial(10)) }
          closed.close
          outcomes.pop
          writer.write("bytes")
          bytes.pop
        end
      end
    end
    expect(read).to eq "bytes"
  end

  it "makes the peer read the end, though a reader was still waiting" do
    seen = with_io(:socket) do |socket, peer|
      Heddle.run do
        waiting_fiber(Queue.new, socket, ->(io) { io.readpartial(1) })
        socket.close
        [peer.wait_readable(60) && :in_time, peer.read(1)]
      end
    end
    expect(seen).to eq [:in_time, nil]
  end

  it "makes the peer read the end before another fiber has run" do
    seen = with_io(:socket) do |socket, peer|
      Heddle.run do
        waiting_fiber(Queue.new, socket, ->(io) { io.readpartial(1) })
        socket.close
        peer.read_nonblock(1, exception: false)
      end
    end
    expect(seen).to be_nil
  end

  it "makes a pipe's reader read the end when the writing fiber is interrupted" do
    read = with_io(:full_pipe_writer) do |writer, reader|
      Heddle.run do
        outcomes = Queue.new
        waiting_fiber(outcomes, writer, ->(io) { io.write("y" * (1 << 20)) })
        writer.close
        outcomes.pop
        reader.read
      end
    end
    expect(read).to start_with("x").and have_attributes(size: be < (1 << 20))
  end

  it "doesn't give data of the next IO with the same descriptor to a fiber that waited for the closed one" do
    result = with_io(:pipe_reader) do |reader, _writer|
      Heddle.run do
        number = reader.fileno
        outcomes = Queue.new
        waiting_fiber(outcomes, reader, ->(io) { io.readpartial(10) })
        reader.close
        pipes = [IO.pipe]
        pipes << IO.pipe until pipes.last.first.fileno >= number
        heir = pipes.flatten.find { |io| io.fileno == number }
        next [:no_heir] unless heir

        new_reader, new_writer = pipes.find { |pair| pair.include?(heir) }
        new_writer.write("for the heir")
        [outcomes.pop, new_reader.readpartial(20)]
      ensure
        pipes&.flatten&.each(&:close)
      end
    end
    expect(result).to eq [IOError, "for the heir"]
  end

  it "lets the waiting fiber close it again, and wait for another event, in its rescue" do
    events = []
    with_io(:pipe_reader) do |reader|
      Heddle.run do
        Fiber.schedule do
          reader.read(1)
        rescue IOError
          reader.close
          sleep(a_moment)
          events << :rescued
        end
        reader.close
      end
    end
    expect(events).to eq [:rescued]
  end

  it "reports the IOError that the fiber doesn't rescue, and lets the other fibers continue" do
    went_on = false
    expect do
      with_io(:pipe_reader) do |reader|
        Heddle.run do
          Fiber.schedule { reader.read(1) }
          reader.close
          until_others_wait
          went_on = true
        end
      end
    end.to output(/IOError/).to_stderr
    expect(went_on).to be true
  end

  it "works after an earlier wait has ended" do
    closed = with_io(:pipe_reader) do |reader, writer|
      Heddle.run do
        done = Queue.new
        Fiber.schedule { done.push(reader.readpartial(1)) }
        writer.write("x")
        done.pop
        reader.close
        reader.closed?
      end
    end
    expect(closed).to be true
  end

  it "raises IOError in a generator that the root fiber has resumed, when another thread closes it" do
    outcome = with_io(:pipe_reader) do |reader|
      with_scheduler do
        root = Thread.current
        closer = Thread.new do
          until_asleep(root)
          reader.close
        end
        Enumerator.new { |yielder| yielder << reader.gets }.next
      rescue IOError => e
        e.class
      ensure
        closer.join
      end
    end
    expect(outcome).to be IOError
  end

  it "raises IOError in IO#readpartial when the block of PTY.open ends" do
    result = Heddle.run do
      outcomes = Queue.new
      PTY.open do |terminal, device|
        # While these are open, the end of one side does not end a wait for the other.
        @kept = [terminal.dup, device.dup]
        waiting_fiber(outcomes, device, ->(io) { io.readpartial(1) })
      end
      outcomes.pop.tap { @kept.each(&:close) }
    end

    expect(result).to be IOError
  end
end

RSpec.describe "A thread that has just written to an IO", :regression do
  # Each round is a race between the write and the close. Without the remedy, one in about 300 rounds hangs on Ruby 3.3
  # and 3.4: they handle a thread's interrupts at the end of the hook `unblock`, while they hold a lock.
  it "does not keep another thread's fiber from closing the IO" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      600.times do
        reader, writer = IO.pipe
        ready = Queue.new
        closer = Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            ready << true
            reader.read(1)
            [reader, writer].each(&:close)
          end
        end
        ready.pop
        begin
          writer << "x"
        rescue IOError
        end
        closer.join # A fiber that does not return from IO#close keeps the program from ending.
      end
      puts "closed"
    RUBY

    expect([output, errors]).to eq ["closed\n", ""]
  end
end

RSpec.describe "An IO that a fiber waits on", :regression do
  # The waits of the fiber, by their names.
  reading = { "IO#wait_readable" => :wait_readable.to_proc, "IO#read" => :read.to_proc, "IO#gets" => :gets.to_proc,
              "IO.select" => ->(io) { IO.select([io]) } }
  writing = { "IO#wait_writable" => :wait_writable.to_proc, "IO#write" => ->(io) { io.write("y" * (1 << 20)) } }

  # Returns the outcome of a fiber's wait when the block closes or reopens the IO.
  def outcome(io, wait)
    Heddle.run do
      outcomes = Queue.new
      Fiber.schedule do
        wait.call(io)
        outcomes.push(:not_interrupted)
      rescue IOError => e
        outcomes.push(e.class)
      end
      yield
      outcomes.pop
    end
  end

  # Ruby 4.0 notifies a scheduler neither of a reopen by name nor, in IO.select, of a reopen by another IO.
  notified_of_reopen = RUBY_VERSION < "4.0"

  reading.each do |name, wait|
    it "ends #{name} with IOError when close_read closes a pipe" do
      expect(IO.pipe { |reader, _| outcome(reader, wait) { reader.close_read } }).to be IOError
    end

    it "ends #{name} with IOError when a pipe is reopened as another pipe", if: notified_of_reopen do
      result = IO.pipe do |reader, _|
        IO.pipe { |other, _| outcome(reader, wait) { reader.reopen(other) } }
      end
      expect(result).to be IOError
    end

    it "ends #{name} with IOError when a pipe is reopened as a file", if: notified_of_reopen do
      expect(IO.pipe { |reader, _| outcome(reader, wait) { reader.reopen(File::NULL) } }).to be IOError
    end
  end

  writing.each do |name, wait|
    it "ends #{name} with IOError when close_write closes a pipe" do
      result = IO.pipe do |_reader, writer|
        fill(writer)
        outcome(writer, wait) { writer.close_write }
      end
      expect(result).to be IOError
    end
  end

  it "can be read after a reopen as the new IO" do
    read = IO.pipe do |reader, _|
      IO.pipe do |other, writer|
        outcome(reader, :wait_readable.to_proc) { reader.reopen(other) }
        writer.write("from the other")
        Heddle.run { reader.readpartial(20) }
      end
    end
    expect(read).to eq "from the other"
  end
end
