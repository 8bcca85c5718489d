# frozen_string_literal: true

require "socket"
require "timeout"
require "tmpdir"

# The kernel may complete a read at the moment at which the fiber is interrupted.
RSpec.describe "A read that is interrupted" do
  bytes = 10_000

  def sockets
    pair = UNIXSocket.pair
    yield(*pair)
  ensure
    pair.each { |socket| socket.close unless socket.closed? }
  end

  # Writes byte by byte, so that most reads have to wait and can be interrupted there.
  def dribble(socket, bytes)
    bytes.times do |number|
      socket.write((number % 256).chr)
      sleep(0) if (number % 3).zero?
      sleep(a_moment) if (number % 1000).zero?
    end
    socket.close_write
  end

  def expected(bytes) = Array.new(bytes) { |number| number % 256 }

  it "by a time limit loses no byte" do
    received = "".b
    limits = 0
    sockets do |reader, writer|
      Heddle.run do
        Fiber.schedule { pass_until { limits.positive? } || dribble(writer, bytes) }
        loop do
          received << Timeout.timeout(0.00001, IOError) { reader.readpartial(64) }
        rescue EOFError
          break
        rescue IOError
          limits += 1
        end
      end
    end
    expect(received.bytes).to eq expected(bytes)
    expect(limits).to be_positive
  end

  it "by Fiber#raise loses no byte" do
    poke = Class.new(StandardError)
    received = "".b
    sockets do |reader, writer|
      Heddle.run do
        over = false
        victim = Fiber.schedule do
          loop do
            received << reader.readpartial(64)
          rescue poke
            next
          rescue EOFError
            break
          end
          over = true
        end
        Fiber.schedule { dribble(writer, bytes) }
        until over
          victim.raise(poke)
          sleep(0)
        end
      rescue FiberError
        raise unless over
      end
    end
    expect(received.bytes).to eq expected(bytes)
  end

  it "by a time limit ends although there is always more to read" do
    sockets do |reader, writer|
      Heddle.run do
        feeding = Heddle.spin(background: true) { loop { writer.write("x" * 1000) } }
        expect { Timeout.timeout(0.01, IOError) { loop { reader.readpartial(1000) } } }.to raise_error(IOError)
        Heddle.stop(feeding)
      end
    end
  end

  it "leaves the socket usable for the next read" do
    sockets do |reader, writer|
      received = Heddle.run do
        Heddle.move_on_after(0.001) { reader.readpartial(1) }
        writer.write("x")
        reader.readpartial(1)
      end
      expect(received).to eq "x"
    end
  end
end

RSpec.describe "A fiber that reads from a socket" do
  # Yields the fiber, and returns what happens to it until the block ends.
  def log_of_reader
    UNIXSocket.pair do |reading, _writing|
      log = []
      reader = Fiber.schedule do
        log << reading.readpartial(1)
      ensure
        log << :ensured
      end
      yield reader
      log
    end
  end

  it "is ended by Fiber#kill, and its ensure is run" do
    alive = nil
    log = Heddle.run do
      log_of_reader do |reader|
        reader.kill
        sleep 0 while (alive = reader.alive?)
      end
    end
    expect([log, alive]).to eq [[:ensured], false]
  end

  it "is ended by Thread#kill while its thread waits for it, and its ensure is run" do
    log = []
    begun = Queue.new
    thread = Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      UNIXSocket.pair do |reading, _writing|
        Fiber.new(blocking: false) do
          begun.push(true)
          log << reading.readpartial(1)
        ensure
          log << :ensured
        end.resume
        log << :back
      end
    end
    begun.pop
    thread.kill.join
    expect([log, thread.status]).to eq [[:ensured], false]
  end
end

RSpec.describe "A named pipe that is full" do
  it "blocks no fiber but its writer" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "pipe")
      File.mkfifo(path)
      File.open(path, File::RDWR) do |pipe|
        pipe.sync = true
        events = []
        Heddle.run do
          writing = Heddle.spin { pipe.write("x" * 200_000) }
          Heddle.snooze
          events << :others
          Heddle.stop(writing)
        end
        expect(events).to eq [:others]
      end
    end
  end
end
