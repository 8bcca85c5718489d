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
      IO.select([reader], nil, nil, 60)
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "returns nil when its timeout expires, and not before" do
    started = Clock.now
    ready = Heddle.run { IO.select([reader], nil, nil, 0.05) }
    elapsed = Clock.now - started

    expect([ready, elapsed >= 0.05]).to eq([nil, true])
  end

  it "doesn't wait with a timeout of 0" do
    writer.write("x")
    looks = Heddle.run do
      full = IO.select([reader], nil, nil, 0)
      reader.readpartial(10)
      [full, IO.select([reader], nil, nil, 0)]
    end

    expect(looks).to eq([[[reader], [], []], nil])
  end

  it "sleeps when it has no IO but a timeout" do
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

  it "lets other fibers run while it waits" do
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

  it "returns an IO with data in its read buffer" do
    ready = Heddle.run do
      writer.write("line\nrest")
      reader.gets
      IO.select([reader], nil, nil, 60)
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "returns an IO with data in its read buffer beside other IOs that aren't ready" do
    ready = Heddle.run do
      silent, other = IO.pipe
      writer.write("line\nrest")
      reader.gets
      IO.select([silent, reader], nil, nil, 60)
    ensure
      [silent, other].each { |io| io&.close }
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "distinguishes readers and writers" do
    ready = Heddle.run do
      left, right = UNIXSocket.pair
      left.write("x")
      IO.select([right, reader], [right, writer]).map { |ios| ios.map { |io| { right => :right }.fetch(io, io) } }
    ensure
      [left, right].each { |io| io&.close }
    end

    expect(ready).to eq([[:right], [:right, writer], []])
  end

  it "returns each IO that is ready" do
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

  it "returns an IO twice that is given twice" do
    writer.write("x")

    expect(Heddle.run { IO.select([reader, reader]) }).to eq([[reader, reader], [], []])
  end

  it "returns an IO at its end as readable" do
    ready = Heddle.run do
      Fiber.schedule { writer.close }
      IO.select([reader])
    end

    expect(ready).to eq([[reader], [], []])
  end

  it "returns a pipe without a reader as writable" do
    ready = Heddle.run do
      fill(writer)
      Fiber.schedule { reader.close }
      IO.select(nil, [writer])
    end

    expect(ready).to eq([[], [writer], []])
  end

  it "returns regular files as ready" do
    ready = Heddle.run { File.open(__FILE__) { |file| IO.select([file]).first.map(&:path) } }

    expect(ready).to eq([__FILE__])
  end

  it "reports urgent data by its third argument" do
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

  it "may be called by several fibers with the same descriptor" do
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

  it "calls to_io of other objects, and returns these objects" do
    wrapper = Struct.new(:to_io).new(reader)
    ready = Heddle.run do
      Fiber.schedule { writer.write("x") }
      IO.select([wrapper])
    end

    expect(ready).to eq([[wrapper], [], []])
  end

  it "lets other fibers run while a to_io waits, which it calls once" do
    gate = Queue.new
    calls = 0
    slow = Object.new
    io = reader
    slow.define_singleton_method(:to_io) do
      calls += 1
      gate.pop
      io
    end
    ready = Heddle.run do
      selecting = Heddle.spin { IO.select([slow]) }
      sleep 0 until gate.num_waiting.positive?
      gate << :go
      Heddle.spin { writer.write("x") }
      Heddle.await(selecting)
    end

    expect([ready, calls]).to eq [[[slow], [], []], 1]
  end

  it "refuses an object without an IO as Ruby does" do
    others = [nil, Object.new, Struct.new(:to_io).new(1)]
    errors = lambda do
      others.map do |other|
        IO.select([reader, other])
      rescue TypeError => e
        e.message
      end
    end

    expect(Heddle.run(&errors)).to eq(errors.call)
  end

  it "returns on data that a thread writes" do
    thread = Thread.new do
      Thread.pass
      writer.write("x")
    end
    ready = Heddle.run { IO.select([reader]) }
    thread.join

    expect(ready).to eq([[reader], [], []])
  end

  it "doesn't wake the fiber again after it has returned" do
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

  # The expected errors are those that Ruby raises without a scheduler.
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

  it "raises IOError whenever another thread closes an IO, also while it looks which IOs are ready" do
    classes = Array.new(100) do
      reader, writer = IO.pipe
      outcome = Queue.new
      Heddle.run do
        Fiber.schedule do
          loop { IO.select([reader], nil, nil, 0.0001) }
        rescue IOError, SystemCallError => e
          outcome.push(e.class)
        end
        Thread.new { reader.close }.join
        outcome.pop
      end
    ensure
      writer.close
    end
    expect(classes.uniq).to eq [IOError]
  end
end
