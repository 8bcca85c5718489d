# frozen_string_literal: true

require "socket"
require "tmpdir"

RSpec.describe "UNIX sockets" do
  let(:directory) { Dir.mktmpdir("heddle") }
  let(:path) { File.join(directory, "socket") }

  after { FileUtils.remove_entry(directory) }

  def pair(type = :STREAM)
    left, right = UNIXSocket.pair(type)
    yield left, right
  ensure
    [left, right].each { |socket| socket&.close }
  end

  it "carry a request to a server in the same thread, and its response back" do
    answer = Heddle.run do
      UNIXServer.open(path) do |server|
        Fiber.schedule do
          socket = server.accept
          socket.puts(socket.gets.upcase)
          socket.close
        end
        UNIXSocket.open(path) do |client|
          client.puts("weft")
          client.gets
        end
      end
    end

    expect(answer).to eq("WEFT\n")
  end

  it "raise the usual error where no server listens at a path" do
    expect { Heddle.run { UNIXSocket.new(path) } }.to raise_error(Errno::ENOENT)
  end

  it "connect by a name of the abstract namespace", if: RUBY_PLATFORM.include?("linux") do
    name = "\0heddle-#{Process.pid}"
    answer = Heddle.run do
      UNIXServer.open(name) do |server|
        Fiber.schedule do
          socket = server.accept
          socket.write("hello")
          socket.close
        end
        UNIXSocket.open(name, &:read)
      end
    end

    expect(answer).to eq("hello")
  end

  it "carry messages back and forth between two fibers" do
    strokes = []
    pair do |left, right|
      Heddle.run do
        Fiber.schedule do
          while (line = right.gets)
            strokes << line.chomp
            right.puts("pong")
          end
        end
        3.times do
          left.puts("ping")
          strokes << left.gets.chomp
        end
        left.close
      end
    end

    expect(strokes).to eq(%w[ping pong ping pong ping pong])
  end

  it "keep the boundaries of datagrams" do
    messages = pair(:DGRAM) do |left, right|
      Heddle.run do
        Fiber.schedule { ["one", "", "three"].each { |message| left.send(message, 0) } }
        Array.new(3) { right.recv(100) }
      end
    end

    expect(messages).to eq(["one", "", "three"])
  end

  it "let a sender of datagrams wait for its receiver" do
    received = []
    pair(:DGRAM) do |left, right|
      Heddle.run do
        Fiber.schedule { 2000.times { received << right.recv(100).to_i } }
        2000.times { |i| left.send(i.to_s, 0) }
      end
    end

    expect(received).to eq((0...2000).to_a)
  end

  it "keep the boundaries of sequenced packets" do
    packets = pair(:SEQPACKET) do |left, right|
      Heddle.run do
        Fiber.schedule { %w[one two].each { |packet| left.sendmsg(packet) } }
        Array.new(2) { right.recvmsg.first }
      end
    end

    expect(packets).to eq(%w[one two])
  end

  it "pass a descriptor to a fiber that waits for it" do
    text = pair do |left, right|
      Heddle.run do
        reader, writer = IO.pipe
        Fiber.schedule do
          sleep(0)
          left.send_io(reader)
          reader.close
          writer.write("through the handed over end")
          writer.close
        end
        handed = right.recv_io
        handed.read
      ensure
        handed&.close
      end
    end

    expect(text).to eq("through the handed over end")
  end

  it "wait for a descriptor in one fiber while other fibers run" do
    order = []
    pair do |left, right|
      Heddle.run do
        Fiber.schedule do
          order << right.readpartial(10)
        end
        order << "main"
        left.write("data")
      end
    end

    expect(order).to eq(%w[main data])
  end

  it "receive from a server's datagram address with recvfrom" do
    message, = Heddle.run do
      receiver = Socket.new(:UNIX, :DGRAM)
      receiver.bind(Addrinfo.unix(path))
      Fiber.schedule do
        sender = Socket.new(:UNIX, :DGRAM)
        sender.send("to a path", 0, Addrinfo.unix(path))
        sender.close
      end
      receiver.recvfrom(100)
    ensure
      receiver&.close
    end

    expect(message).to eq("to a path")
  end

  it "raise EPIPE in a writer whose peer has closed" do
    attempt = lambda do
      pair do |left, right|
        Heddle.run do
          right.close
          left.write("x")
        end
      end
    end

    expect(&attempt).to raise_error(Errno::EPIPE)
  end

  it "wake every fiber that waits for the same end" do
    ends = pair do |left, right|
      values = []
      Heddle.run do
        5.times { Fiber.schedule { values << right.read } }
        left.close
      end
      values
    end

    expect(ends).to eq([""] * 5)
  end

  it "transfer 1 MiB from a fiber to a thread" do
    size = pair do |left, right|
      counter = Thread.new { right.read.bytesize }
      Heddle.run do
        left.write("x" * (1 << 20))
        left.close
      end
      counter.value
    end

    expect(size).to eq(1 << 20)
  end

  it "transfer 1 MiB from a thread to a fiber" do
    size = pair do |left, right|
      writer = Thread.new do
        left.write("x" * (1 << 20))
        left.close
      end
      Heddle.run { right.read.bytesize }.tap { writer.join }
    end

    expect(size).to eq(1 << 20)
  end
end
