# frozen_string_literal: true

require "socket"

# The next file that is opened gets the number of a closed one. Operations on the closed file must not touch it.
RSpec.describe "A descriptor number that is reused at once", gc: :plain do
  let(:secret) { "SECRET" * 10 }
  # Ruby's messages for an IO that was closed during the call, or just before it.
  let(:closed) { eq("stream closed in another thread").or eq("closed stream") }

  # Returns what the block raises, or its value. An error of another class would end the fiber, and the example would
  # wait for its outcome until its time limit.
  def outcome
    yield
  rescue IOError => e
    e.message
  rescue StandardError => e
    e.inspect
  end

  # Opens a pair of sockets. The first one gets the number, since it is the lowest free one.
  def heir_of(number)
    UNIXSocket.pair.tap { |heir, _| expect(heir.fileno).to eq number }
  end

  # Schedules `wait` on a socket, closes it by `close` after `before`, and opens another with its number. Returns the
  # outcome of the wait, and yields the new pair meanwhile.
  def reuse(wait:, before: ->(_peer) {}, close: :close.to_proc)
    # Later, a collection could close an IO with a lower number, which another example has left.
    GC.start
    GC.disable
    peer, closed = UNIXSocket.pair
    number = closed.fileno
    outcomes = Queue.new
    Fiber.schedule { outcomes.push(outcome { wait.call(closed) }) }
    before.call(peer)
    close.call(closed)
    heir, heirs_peer = heir_of(number)
    yield heir, heirs_peer
    outcomes.pop
  ensure
    GC.enable
    # The closed socket, too: `io.autoclose = false` has left it open to Ruby, with a number that other files will have.
    [peer, heir, heirs_peer, closed].each { |io| io&.close }
  end

  reads = {
    "read(100), of which a part has come" => ->(io) { io.read(100) },
    "gets, of which half a line has come" => ->(io) { io.gets },
    "a loop of readpartial" => ->(io) { loop { io.readpartial(100) } },
    "read without a length" => ->(io) { io.read },
    "each_line" => ->(io) { io.each_line.to_a },
    "IO.copy_stream" => ->(io) { IO.copy_stream(io, StringIO.new) },
    "recv" => ->(io) { loop { io.recv(100) } },
    "IO.select" => ->(io) { loop { IO.select([io]) && io.readpartial(100) } }
  }

  closers = {
    "another fiber" => :close.to_proc,
    "another thread while the fibers' thread computes" => lambda { |io|
      closed = false
      Thread.new { io.close.then { closed = true } }
      # Ruby 4.0 itself waits until the fibers that use the IO have run.
      RUBY_VERSION < "4.0" ? (nil until closed) : (sleep(0) until closed)
    },
    "another scheduler's fiber" => lambda { |io|
      Thread.new { Heddle.run { Fiber.schedule { io.close } } }.join
    },
    "a second IO object with the number" => ->(io) { IO.for_fd(io.fileno).close.then { io.autoclose = false } }
  }

  closers.each do |closer, close|
    reads.each do |name, wait|
      it "gives #{name} no data of the next socket when the first is closed by #{closer}" do
        read = nil
        came = Heddle.run do
          reuse(before: ->(peer) { peer.write("p" * 50) }, close:, wait:) do |heir, peer|
            peer.write(secret)
            sleep(a_moment)
            read = heir.read_nonblock(100, exception: false)
          end
        end
        expect([came, read]).to match [closed, secret]
      end
    end

    it "doesn't write the rest of an earlier write to the next socket when the first is closed by #{closer}" do
      read = nil
      came = Heddle.run do
        reuse(close:, wait: ->(io) { io.write("p" * 8_000_000) }) do |_, peer|
          sleep(a_moment)
          read = peer.read_nonblock(100, exception: false)
        end
      end
      expect([came, read]).to match [closed, :wait_readable]
    end
  end

  it "causes no write to the memory of a freed read buffer" do
    strings = Heddle.run do
      strings = nil
      reuse(before: ->(peer) { peer.write("p" * 50) }, wait: :gets.to_proc) do |_, peer|
        strings = Array.new(300) { "x" * 8100 }
        peer.write("y" * 8100)
        sleep(a_moment)
      end
      strings
    end
    expect(strings).to all eq("x" * 8100)
  end

  it "makes the peer read the end when another thread has closed the socket" do
    errors = Heddle.run do
      Array.new(5) do
        peer, closed = UNIXSocket.pair
        waiting = Fiber.schedule { outcome { closed.read(100) } }
        error = nil
        Thread.new { closed.close.then { error = sent(peer) } }
        RUBY_VERSION < "4.0" ? (nil until error) : (sleep(0) until error)
        Heddle.await(waiting) if waiting.alive?
        error
      ensure
        peer.close
      end
    end
    expect(errors).to all be Errno::EPIPE
  end

  def sent(io)
    io.write("x")
    :sent
  rescue SystemCallError => e
    e.class
  end

  it "is released although the fibers' thread waits for the thread that closes it" do
    skip "Ruby 4.0 itself waits for the fiber, which waits for its thread" if RUBY_VERSION >= "4.0"
    GC.start
    GC.disable
    came = Queue.new
    read = with_scheduler do
      peer, closed = UNIXSocket.pair
      number = closed.fileno
      Fiber.schedule { came.push(outcome { closed.gets }) }
      # In a blocking fiber, so that no other fiber runs meanwhile.
      heir, heirs_peer = Thread.new { closed.close.then { heir_of(number) } }.value
      Fiber.schedule do
        heirs_peer.write(secret)
        came.push(heir.readpartial(100))
        [peer, heir, heirs_peer].each(&:close)
      end
    end
    expect([came.pop, came.pop, read]).to contain_exactly("stream closed in another thread", secret, anything)
  ensure
    GC.enable
  end
end

RSpec.describe "An IO whose buffered bytes are written before it is closed" do
  # Yields a full pipe and the IO that writes to it, with a line in its write buffer.
  def with_unwritten_line
    reader, writer = IO.pipe
    nil until writer.write_nonblock("x" * (1 << 16), exception: false) == :wait_writable
    writer.sync = false
    writer.write("line\n")
    yield writer, reader
  ensure
    reader.close
    writer.close
  end

  def outcome
    yield
  rescue IOError => e
    e.message
  end

  uses = { "wait_writable" => ->(io) { io.wait_writable }, "syswrite" => ->(io) { io.syswrite("y") },
           "IO.select" => ->(io) { IO.select(nil, [io]) } }

  uses.each do |name, use|
    it "raises IOError in a fiber that calls #{name} during the close" do
      result = with_unwritten_line do |writer, reader|
        Heddle.run do
          closing = Heddle.spin { writer.close }
          Heddle.snooze
          used = outcome { use.call(writer) }
          written = reader.read
          Heddle.await(closing)
          [used, written.end_with?("xline\n")]
        end
      end
      expect(result).to eq ["stream closed in another thread", true]
    end
  end
end

RSpec.describe "Closing an IO with a pipe for each direction" do
  def outcomes_of_waits_on(process)
    outcomes = Queue.new
    { reading: -> { process.gets }, writing: -> { process.write("x" * (1 << 20)) } }.each do |name, wait|
      Fiber.schedule do
        wait.call
      rescue IOError => e
        outcomes.push([name, e.class])
      end
    end
    yield
    Array.new(outcomes.size) { outcomes.pop }
  end

  it "raises IOError in the reading and in the writing fiber" do
    outcomes = Heddle.run do
      process = IO.popen(%w[sleep 60], "r+")
      outcomes_of_waits_on(process) do
        Process.kill(:KILL, process.pid)
        process.close
        sleep(0)
      end
    end
    expect(outcomes).to contain_exactly([:reading, IOError], [:writing, IOError])
  end

  it "lets the reading fiber continue when the writing side is closed" do
    read = Heddle.run do
      IO.popen(["cat"], "r+") do |process|
        reading = Heddle.spin { process.read }
        process.write("written")
        process.close_write
        Heddle.await(reading)
      end
    end
    expect(read).to eq "written"
  end
end
