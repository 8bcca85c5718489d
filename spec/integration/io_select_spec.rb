# frozen_string_literal: true

require "socket"

RSpec.describe "IO.select" do
  let(:ends) { IO.pipe }
  let(:reader) { ends.first }
  let(:writer) { ends.last }

  after { ends.each { |io| io.close unless io.closed? } }

  it "waits with one argument" do
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([reader])
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "waits with two arguments" do
    ready = Heddle.run do
      fill(writer)
      Fiber.schedule { reader.readpartial(1 << 20) }
      IO.select(nil, [writer])
    end

    expect(ready).to eq([[], [writer], []])
  end

  it "waits with three arguments" do
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([reader], [], [])
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "waits with four arguments" do
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([reader], nil, nil, 10)
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "gives nil when its time is over, and not before" do
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    ready = Heddle.run { IO.select([reader], nil, nil, 0.05) }
    elapsed = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started

    expect([ready, elapsed >= 0.05]).to eq([nil, true])
  end

  it "only looks when its time is 0" do
    writer.write("x")
    looks = Heddle.run do
      full = IO.select([reader], nil, nil, 0)
      reader.readpartial(10)
      [full, IO.select([reader], nil, nil, 0)]
    end

    expect(looks).to eq([[[reader], [], []], nil])
  end

  it "sleeps when there is nothing to wait for but the time" do
    order = []
    Heddle.run do
      Fiber.schedule do
        IO.select(nil, nil, nil, 0.02)
        order << "woken"
      end
      order << "first"
    end

    expect(order).to eq(%w[first woken])
  end

  it "lets others run while it waits" do
    order = []
    Heddle.run do
      Fiber.schedule do
        IO.select([reader])
        order << "ready"
      end
      order << "first"
      writer.write("x")
    end

    expect(order).to eq(%w[first ready])
  end

  it "counts what lies in a read buffer as ready" do
    ready = Heddle.run do
      writer.write("line\nrest")
      reader.gets
      IO.select([reader], nil, nil, 10)
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "counts what lies in a read buffer also next to others that aren't ready" do
    ready = Heddle.run do
      silent, other = IO.pipe
      writer.write("line\nrest")
      reader.gets
      IO.select([silent, reader], nil, nil, 10)
    ensure
      [silent, other].each { |io| io&.close }
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "tells readers and writers apart" do
    ready = Heddle.run do
      left, right = UNIXSocket.pair
      left.write("x")
      IO.select([right, reader], [right, writer]).map { |ios| ios.map { |io| { right => :right }.fetch(io, io) } }
    ensure
      [left, right].each { |io| io&.close }
    end

    expect(ready).to eq([[:right], [:right, writer], []])
  end

  it "gives every one that is ready" do
    ready = Heddle.run do
      pipes = Array.new(20) { IO.pipe }
      pipes.each_with_index { |(_, into), i| into.write("x") if i.even? }
      from = pipes.map(&:first)
      IO.select(from).first.map { |io| from.index(io) }
    ensure
      pipes&.flatten&.each(&:close)
    end

    expect(ready.sort).to eq((0...20).select(&:even?))
  end

  it "gives one that is asked for twice twice" do
    writer.write("x")

    expect(Heddle.run { IO.select([reader, reader]) }).to eq([[reader, reader], [], []])
  end

  it "counts the end of a stream as readable" do
    ready = Heddle.run do
      Fiber.schedule { writer.close }
      IO.select([reader])
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "counts a pipe that nobody reads as writable" do
    ready = Heddle.run do
      fill(writer)
      Fiber.schedule { reader.close }
      IO.select(nil, [writer])
    end

    expect(ready).to eq([[], [writer], []])
  end

  it "counts regular files as ready" do
    ready = Heddle.run { File.open(__FILE__) { |file| IO.select([file]).first.map(&:path) } }

    expect(ready).to eq([__FILE__])
  end

  it "tells of urgent data by its third argument" do
    urgent = Heddle.run do
      TCPServer.open("127.0.0.1", 0) do |server|
        client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
        peer = server.accept
        Fiber.schedule { peer.send("!", Socket::MSG_OOB) }
        IO.select(nil, nil, [client]).last == [client]
      ensure
        [client, peer].each { |socket| socket&.close }
      end
    end

    expect(urgent).to be(true)
  end

  it "is called by several fibers on the same descriptor" do
    woken = []
    Heddle.run do
      5.times do |i|
        Fiber.schedule do
          IO.select([reader])
          woken << i
        end
      end
      writer.write("x")
    end

    expect(woken.sort).to eq([0, 1, 2, 3, 4])
  end

  it "asks objects that aren't an IO for theirs, and gives back the objects" do
    wrapper = Struct.new(:to_io).new(reader)
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([wrapper])
    end

    expect(ready).to eq([[wrapper], [], []])
  end

  it "is woken by what a thread writes" do
    thread = Thread.new do
      Thread.pass
      writer.write("x")
    end
    ready = Heddle.run { IO.select([reader]) }
    thread.join

    expect(ready).to eq([[reader], [], []])
  end

  it "leaves nothing behind that wakes the fiber once more" do
    second, into = IO.pipe
    woken = []
    Heddle.run do
      Fiber.schedule do
        woken << IO.select([reader, second]).first.size
        woken << IO.select([second], nil, nil, 0.05)
      end
      writer.write("x")
      sleep(0)
      writer.write("y")
    end
    [second, into].each(&:close)

    expect(woken).to eq([1, nil])
  end

  it "survives a collection at every allocation", gc: :stress do
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([reader], [], [], 10)
    end

    expect(ready).to eq([[reader], [], []])
  end

  # What Ruby raises without a scheduler is what is right.
  {
    "a closed IO" => -> { IO.select([IO.pipe.each(&:close).first]) },
    "something that isn't an IO" => -> { IO.select([1]) },
    "something that isn't an Array" => -> { IO.select($stdin) },
    "a negative time" => -> { IO.select([$stdin], nil, nil, -1) },
    "a time that isn't a number" => -> { IO.select([$stdin], nil, nil, Float::NAN) },
    "a time that is a String" => -> { IO.select([$stdin], nil, nil, "1") },
    "no argument" => -> { IO.select },
    "too many arguments" => -> { IO.select(nil, nil, nil, 0, nil) }
  }.each do |what, call|
    it "raises for #{what} what it raises without a scheduler" do
      expected = begin
        call.call
      rescue StandardError => e
        e
      end

      expect { Heddle.run(&call) }.to raise_error(expected.class)
    end
  end
end
