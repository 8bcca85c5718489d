# frozen_string_literal: true

require "socket"

RSpec.describe "TCP sockets" do
  let(:server) { TCPServer.new("127.0.0.1", 0) }
  let(:port) { server.local_address.ip_port }

  after { server.close unless server.closed? }

  def connect
    TCPSocket.new("127.0.0.1", port)
  end

  def reset(socket)
    socket.setsockopt(Socket::Option.linger(true, 0))
    socket.close
  end

  it "carry a request to a server in the same thread, and its response back" do
    answer = Heddle.run do
      accept_each(server, 1) { |socket| socket.puts(socket.gets.upcase) }
      client = connect
      client.puts("weft")
      client.gets
    ensure
      client&.close
    end

    expect(answer).to eq("WEFT\n")
  end

  it "are all served at the same time" do
    arrived = 0
    all_arrived = Queue.new
    answers = []
    Heddle.run do
      accept_each(server, 100) do |socket|
        line = socket.gets
        # No request is answered before all have arrived.
        (arrived += 1) == 100 ? all_arrived.close : all_arrived.pop
        socket.write(line)
      end
      100.times do |i|
        Fiber.schedule do
          client = connect
          client.puts(i)
          answers << client.read.to_i
        ensure
          client&.close
        end
      end
    end

    expect(answers.sort).to eq((0...100).to_a)
  end

  it "can be accepted by several fibers on one server, each connection by one of them" do
    accepted = []
    Heddle.run do
      4.times do |i|
        Fiber.schedule do
          socket = server.accept
          accepted << i
          socket.close
        end
      end
      4.times do
        client = connect
        client.read
        client.close
      end
    end

    expect(accepted.sort).to eq([0, 1, 2, 3])
  end

  it "are served by an accept_loop that runs beside its clients" do
    port = nil
    answers = Heddle.run do
      Fiber.schedule do
        Socket.tcp_server_sockets("127.0.0.1", 0) do |sockets|
          port = sockets.first.local_address.ip_port
          served = 0
          Socket.accept_loop(sockets) do |socket, _address|
            socket.write("hello")
            socket.close
            break if (served += 1) == 3
          end
        end
      end
      Array.new(3) { TCPSocket.open("127.0.0.1", port, &:read) }
    end

    expect(answers).to eq(%w[hello hello hello])
  end

  it "end for the reader after the peer's close_write, and can still be written to" do
    answer = Heddle.run do
      accept_each(server, 1) { |socket| socket.write(socket.read.size) }
      client = connect
      client.write("x" * 70_000)
      client.close_write
      client.read
    ensure
      client&.close
    end

    expect(answer).to eq("70000")
  end

  it "transfer more than their buffers hold in both directions at the same time" do
    data = Random.new(7).bytes(4 << 20)
    received = {}
    Heddle.run do
      accept_each(server, 1) do |socket|
        all = Queue.new
        Fiber.schedule { all << socket.read(data.bytesize) }
        socket.write(data)
        received[:server] = all.pop
      end
      client = connect
      read = Queue.new
      Fiber.schedule { read << client.read(data.bytesize) }
      client.write(data)
      received[:client] = read.pop
      client.close
    end

    expect([received[:server] == data, received[:client] == data]).to eq([true, true])
  end

  it "return the available bytes from readpartial" do
    parts = Heddle.run do
      accept_each(server, 1) do |socket|
        socket.write("one")
        socket.gets
        socket.write("two")
      end
      client = connect
      first = client.readpartial(1000)
      client.puts
      [first, client.readpartial(1000)]
    ensure
      client&.close
    end

    expect(parts).to eq(%w[one two])
  end

  it "assemble lines from several segments" do
    lines = Heddle.run do
      accept_each(server, 1) do |socket|
        %W[wa rp\nwe ft\n selvage].each do |piece|
          socket.write(piece)
          # Lets the reader run between two segments.
          sleep(0)
        end
      end
      client = connect
      client.each_line.to_a
    ensure
      client&.close
    end

    expect(lines).to eq(%W[warp\n weft\n selvage])
  end

  it "send and receive with send and recv" do
    answer = Heddle.run do
      accept_each(server, 1) { |socket| socket.send(socket.recv(100).reverse, 0) }
      client = connect
      client.send("abc", 0)
      client.recv(100)
    ensure
      client&.close
    end

    expect(answer).to eq("cba")
  end

  it "send and receive with sendmsg and recvmsg" do
    answer = Heddle.run do
      accept_each(server, 1) { |socket| socket.sendmsg(socket.recvmsg.first.reverse) }
      client = connect
      client.sendmsg("abc")
      client.recvmsg.first
    ensure
      client&.close
    end

    expect(answer).to eq("cba")
  end

  it "keep data that was only peeked at" do
    seen = Heddle.run do
      accept_each(server, 1) { |socket| socket.write("peek") }
      client = connect
      [client.recv(4, Socket::MSG_PEEK), client.recv(4)]
    ensure
      client&.close
    end

    expect(seen).to eq(%w[peek peek])
  end

  it "report urgent data by wait_priority" do
    urgent = Heddle.run do
      client = connect
      peer = server.accept
      Fiber.schedule { peer.send("!", Socket::MSG_OOB) }
      client.wait_priority
      client.recv(1, Socket::MSG_OOB)
    ensure
      [client, peer].each { |socket| socket&.close }
    end

    expect(urgent).to eq("!")
  end

  it "raise ECONNREFUSED where no server listens" do
    with_refusing_address do |address|
      expect { Heddle.run { TCPSocket.new("127.0.0.1", address.ip_port) } }.to raise_error(Errno::ECONNREFUSED)
    end
  end

  it "raise in a reader when the connection was reset" do
    attempt = lambda do
      Heddle.run do
        client = connect
        peer = server.accept
        Fiber.schedule { reset(peer) }
        client.read
      ensure
        client&.close
      end
    end

    expect(&attempt).to raise_error(Errno::ECONNRESET)
  end

  it "raise in a writer when the peer has closed" do
    attempt = lambda do
      Heddle.run do
        client = connect
        server.accept.close
        loop { client.write("x" * 1000) }
      ensure
        client&.close
      end
    end

    expect(&attempt).to raise_error(an_instance_of(Errno::EPIPE).or(an_instance_of(Errno::ECONNRESET)))
  end

  it "wake a writer whose peer resets the connection while it waits" do
    attempt = lambda do
      Heddle.run do
        client = connect
        peer = server.accept
        Fiber.schedule do
          peer.readpartial(1)
          reset(peer)
        end
        client.write("x" * (32 << 20))
      ensure
        client&.close
      end
    end

    expect(&attempt).to raise_error(an_instance_of(Errno::EPIPE).or(an_instance_of(Errno::ECONNRESET)))
  end

  it "connect to a server that another thread accepts on" do
    acceptor = Thread.new do
      socket = server.accept
      socket.write("from a thread")
      socket.close
    end
    answer = Heddle.run { TCPSocket.open("127.0.0.1", port, &:read) }
    acceptor.join

    expect(answer).to eq("from a thread")
  end

  it "connect by Socket.tcp with its connect_timeout" do
    answer = Heddle.run do
      accept_each(server, 1) { |socket| socket.write("hello") }
      Socket.tcp("127.0.0.1", port, connect_timeout: 60, &:read)
    end

    expect(answer).to eq("hello")
  end

  it "can be read by one fiber while another fiber writes" do
    echoed = []
    Heddle.run do
      accept_each(server, 1) { |socket| IO.copy_stream(socket, socket) }
      client = connect
      Fiber.schedule do
        50.times { echoed << client.gets.to_i }
        client.close
      end
      50.times do |i|
        client.puts(i)
        sleep(0)
      end
    end

    expect(echoed).to eq((0...50).to_a)
  end
end
