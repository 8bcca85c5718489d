# frozen_string_literal: true

require "io/nonblock"
require "io/wait"
require "socket"

RSpec.describe IO do
  let(:ends) { IO.pipe }
  let(:reader) { ends.first }
  let(:writer) { ends.last }

  after { ends.each { |io| io.close unless io.closed? } }

  describe "#read_nonblock" do
    it "raises without waiting when there is no data" do
      expect { Heddle.run { reader.read_nonblock(10) } }.to raise_error(IO::EAGAINWaitReadable)
    end

    it "returns :wait_readable with exception: false when there is no data" do
      expect(Heddle.run { reader.read_nonblock(10, exception: false) }).to eq(:wait_readable)
    end

    it "returns the data that is available" do
      text = Heddle.run do
        writer.write("here")
        reader.read_nonblock(10)
      end

      expect(text).to eq("here")
    end

    it "returns the data in the read buffer" do
      text = Heddle.run do
        writer.write("line\nrest")
        reader.gets
        reader.read_nonblock(10)
      end

      expect(text).to eq("rest")
    end

    it "raises EOFError at the end" do
      writer.close

      expect { Heddle.run { reader.read_nonblock(10) } }.to raise_error(EOFError)
    end

    it "returns nil with exception: false at the end" do
      writer.close

      expect(Heddle.run { reader.read_nonblock(10, exception: false) }).to be_nil
    end

    it "doesn't wait on a descriptor that was in blocking mode" do
      reader.nonblock = false

      expect(Heddle.run { reader.read_nonblock(10, exception: false) }).to eq(:wait_readable)
    end

    it "reads everything in a loop with wait_readable" do
      text = Heddle.run do
        Fiber.schedule do
          %w[one two three].each do |part|
            writer.write(part)
            sleep(0)
          end
          writer.close
        end
        parts = []
        while (part = reader.read_nonblock(100, exception: false))
          part == :wait_readable ? reader.wait_readable : parts << part
        end
        parts.join
      end

      expect(text).to eq("onetwothree")
    end
  end

  describe "#write_nonblock" do
    it "raises without waiting when there is no room" do
      expect { Heddle.run { loop { writer.write_nonblock("x" * 4096) } } }.to raise_error(IO::EAGAINWaitWritable)
    end

    it "returns :wait_writable with exception: false when there is no room" do
      fill(writer)

      expect(Heddle.run { writer.write_nonblock("x", exception: false) }).to eq(:wait_writable)
    end

    it "writes as much as there is room for" do
      written = Heddle.run { writer.write_nonblock("x" * (1 << 20)) }

      expect(reader.read_nonblock(1 << 20).bytesize).to eq(written)
    end

    it "finds room after wait_writable" do
      written = Heddle.run do
        fill(writer)
        Fiber.schedule { reader.readpartial(1 << 20) }
        writer.wait_writable
        writer.write_nonblock("xyz")
      end

      expect(written).to eq(3)
    end

    it "raises EPIPE when there is no reader" do
      reader.close

      expect { Heddle.run { writer.write_nonblock("x") } }.to raise_error(Errno::EPIPE)
    end
  end

  describe "#accept_nonblock of a server" do
    let(:server) { TCPServer.new("127.0.0.1", 0) }

    after { server.close }

    it "raises without waiting when there is no connection" do
      expect { Heddle.run { server.accept_nonblock } }.to raise_error(IO::EAGAINWaitReadable)
    end

    it "returns the connection that wait_readable has waited for" do
      text = Heddle.run do
        Fiber.schedule { TCPSocket.open("127.0.0.1", server.local_address.ip_port) { |client| client.write("hello") } }
        server.wait_readable
        server.accept_nonblock.then { |socket| socket.read.tap { socket.close } }
      end

      expect(text).to eq("hello")
    end
  end

  describe "#connect_nonblock of a socket" do
    let(:server) { TCPServer.new("127.0.0.1", 0) }

    after { server.close unless server.closed? }

    it "is connected after wait_writable" do
      connected = Heddle.run do
        socket = Socket.new(:INET, :STREAM)
        result = socket.connect_nonblock(server.local_address, exception: false)
        socket.wait_writable if result == :wait_writable
        socket.connect_nonblock(server.local_address, exception: false)
        socket.remote_address.ip_port
      ensure
        socket&.close
      end

      expect(connected).to eq(server.local_address.ip_port)
    end

    it "raises its error when no server listens" do
      attempt = lambda do |address|
        Heddle.run do
          socket = Socket.new(:INET, :STREAM)
          socket.connect_nonblock(address, exception: false)
          socket.wait_writable
          socket.connect_nonblock(address)
        ensure
          socket&.close
        end
      end

      with_refusing_address do |address|
        expect { attempt.call(address) }.to raise_error(Errno::ECONNREFUSED)
      end
    end
  end

  describe "#recv_nonblock of a socket" do
    it "returns :wait_readable without waiting, and later the datagram" do
      left, right = UNIXSocket.pair(:DGRAM)
      results = Heddle.run do
        nothing = right.recv_nonblock(10, exception: false)
        left.send("x", 0)
        [nothing, right.recv_nonblock(10)]
      end
      [left, right].each(&:close)

      expect(results).to eq([:wait_readable, "x"])
    end
  end

  describe "#wait" do
    it "returns by wait_readable when there is data" do
      ready = Heddle.run do
        Fiber.schedule { writer.write("x") }
        reader.wait_readable
      end

      expect(ready).to be(reader)
    end

    it "returns nil when its timeout expires" do
      expect(Heddle.run { reader.wait_readable(0.01) }).to be_nil
    end

    it "doesn't wait with a timeout of 0" do
      expect(Heddle.run { [reader.wait_readable(0), writer.wait_writable(0)] }).to eq([nil, writer])
    end

    it "returns those of several events that have occurred" do
      left, right = UNIXSocket.pair
      events = Heddle.run do
        writable = left.wait(IO::READABLE | IO::WRITABLE, 5)
        right.write("x")
        [writable, left.wait(IO::READABLE | IO::WRITABLE, 5)]
      end
      [left, right].each(&:close)

      expect(events).to eq([IO::WRITABLE, IO::READABLE | IO::WRITABLE])
    end

    it "lets a reader and a writer of one socket wait at the same time" do
      left, right = UNIXSocket.pair
      order = []
      Heddle.run do
        fill(left)
        Fiber.schedule { order << :readable if left.wait_readable }
        Fiber.schedule { order << :writable if left.wait_writable }
        right.write("x")
        sleep(0) until order == [:readable]
        until order.size == 2
          right.read_nonblock(1 << 20, exception: false)
          sleep(0)
        end
      end
      [left, right].each(&:close)

      expect(order).to eq(%i[readable writable])
    end

    it "wakes all fibers that wait for the same event" do
      woken = 0
      Heddle.run do
        10.times { Fiber.schedule { woken += 1 if reader.wait_readable } }
        writer.write("x")
      end

      expect(woken).to eq(10)
    end

    it "returns at once for data in the read buffer" do
      ready = Heddle.run do
        writer.write("line\nrest")
        reader.gets
        reader.wait_readable(60)
      end

      expect(ready).to be(true)
    end

    it "treats the end as readable" do
      ready = Heddle.run do
        Fiber.schedule { writer.close }
        reader.wait_readable
      end

      expect(ready).to be(reader)
    end

    it "raises for an empty set of events what it raises without a scheduler" do
      expect { Heddle.run { reader.wait(0, 0) } }.to raise_error(ArgumentError, /[Ee]vents must be positive/)
    end
  end
end
