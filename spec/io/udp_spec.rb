# frozen_string_literal: true

require "socket"

RSpec.describe "UDP sockets" do
  let(:receiver) { UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) } }
  let(:sender) { UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", receiver.local_address.ip_port) } }

  after { [receiver, sender].each { |socket| socket.close unless socket.closed? } }

  it "let a fiber wait for a datagram that another fiber sends" do
    order = []
    Heddle.run do
      Fiber.schedule { order << receiver.recv(100) }
      order << "sending"
      sender.send("datagram", 0)
    end

    expect(order).to eq(%w[sending datagram])
  end

  it "return by recvfrom the sender of a datagram, so that it can be answered" do
    answer = Heddle.run do
      Fiber.schedule do
        message, (_family, port, _name, address) = receiver.recvfrom(100)
        receiver.send(message.upcase, 0, address, port)
      end
      sender.send("ping", 0)
      sender.recvfrom(100).first
    end

    expect(answer).to eq("PING")
  end

  it "send to a packed address that contains the byte of a percent sign without a thread" do
    allow(Thread).to receive(:new).and_call_original
    sent = Heddle.run { UDPSocket.open { |socket| socket.send("datagram", 0, Socket.sockaddr_in(9509, "127.0.0.1")) } }

    expect(sent).to eq(8)
    expect(Thread).not_to have_received(:new)
  end

  it "keep the boundaries of datagrams, and empty ones" do
    messages = Heddle.run do
      Fiber.schedule { ["one", "", "three"].each { |message| sender.send(message, 0) } }
      Array.new(3) { receiver.recv(100) }
    end

    expect(messages).to eq(["one", "", "three"])
  end

  it "truncate a datagram that is longer than requested" do
    messages = Heddle.run do
      Fiber.schedule do
        sender.send("abcdef", 0)
        sender.send("next", 0)
      end
      [receiver.recv(3), receiver.recv(100)]
    end

    expect(messages).to eq(%w[abc next])
  end

  it "give each of several waiting fibers one datagram" do
    received = []
    Heddle.run do
      10.times { Fiber.schedule { received << receiver.recv(100).to_i } }
      10.times { |i| sender.send(i.to_s, 0) }
    end

    expect(received.sort).to eq((0...10).to_a)
  end

  it "wait for a message with recvmsg" do
    message = Heddle.run do
      Fiber.schedule { sender.sendmsg("by sendmsg") }
      receiver.recvmsg.first
    end

    expect(message).to eq("by sendmsg")
  end

  it "raise ECONNREFUSED for a refused datagram in the fiber that waits for the response" do
    attempt = lambda do
      sender
      receiver.close
      Heddle.run do
        sender.send("anybody?", 0)
        sender.recv(100)
      end
    end

    expect(&attempt).to raise_error(Errno::ECONNREFUSED)
  end

  it "serve many clients from one socket" do
    answers = []
    Heddle.run do
      Fiber.schedule do
        50.times do
          message, address = receiver.recvmsg
          receiver.sendmsg((message.to_i * 2).to_s, 0, address)
        end
      end
      50.times do |i|
        Fiber.schedule do
          client = UDPSocket.new
          client.connect("127.0.0.1", receiver.local_address.ip_port)
          client.send(i.to_s, 0)
          answers << client.recv(100).to_i
        ensure
          client&.close
        end
      end
    end

    expect(answers.sort).to eq((0...50).map { |i| i * 2 })
  end

  it "are served by Socket.udp_server_loop_on beside a client" do
    answer = Heddle.run do
      socket = Socket.for_fd(receiver.fileno)
      socket.autoclose = false
      Fiber.schedule do
        Socket.udp_server_loop_on([socket]) do |message, source|
          source.reply(message.reverse)
          break
        end
      end
      sender.send("abc", 0)
      sender.recv(100)
    end

    expect(answer).to eq("cba")
  end
end
