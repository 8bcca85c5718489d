# frozen_string_literal: true

require "openssl"
require "socket"

RSpec.describe "TLS" do
  let(:key) { OpenSSL::PKey::EC.generate("prime256v1") }
  let(:certificate) { self_signed(key) }
  let(:server) { OpenSSL::SSL::SSLServer.new(TCPServer.new("127.0.0.1", 0), server_context) }
  let(:port) { server.addr[1] }

  let(:server_context) do
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.cert = certificate
      context.key = key
    end
  end

  # A context is frozen when it is first used, which is when the server starts.
  before { server }
  after { server.close }

  def self_signed(key)
    OpenSSL::X509::Certificate.new.tap do |certificate|
      certificate.version = 2
      certificate.serial = 1
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      certificate.public_key = key
      certificate.not_before = Time.now - 3600
      certificate.not_after = Time.now + 3600
      certificate.sign(key, OpenSSL::Digest.new("SHA256"))
    end
  end

  # A client's context that trusts this server only.
  def trusting
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.verify_mode = OpenSSL::SSL::VERIFY_PEER
      context.cert_store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(certificate) }
    end
  end

  def connect(context = trusting)
    socket = TCPSocket.new("127.0.0.1", port)
    tls = OpenSSL::SSL::SSLSocket.new(socket, context)
    tls.sync_close = true
    tls.connect
  rescue StandardError
    socket&.close
    raise
  end

  it "carries a request to a server in the same thread, and its response back" do
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

  it "lets other fibers run while a handshake waits for the peer" do
    order = []
    Heddle.run do
      listener = TCPServer.new("127.0.0.1", 0)
      Fiber.schedule do
        client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", listener.addr[1]), trusting)
        client.sync_close = true
        client.connect
        order << "shaken hands"
        client.close
      end
      raw = listener.accept
      order << "first"
      peer = OpenSSL::SSL::SSLSocket.new(raw, server_context).accept
      peer.read
      [raw, listener].each(&:close)
    end

    expect(order).to eq(["first", "shaken hands"])
  end

  it "serves many clients at the same time" do
    asked = 0
    all_asked = Queue.new
    answers = []
    Heddle.run do
      accept_each(server, 20) do |socket|
        line = socket.gets
        # No request is answered before all have arrived.
        (asked += 1) == 20 ? all_asked.close : all_asked.pop
        socket.write(line)
      end
      20.times do |i|
        Fiber.schedule do
          client = connect
          client.puts(i)
          answers << client.gets.to_i
        ensure
          client&.close
        end
      end
    end

    expect(answers.sort).to eq((0...20).to_a)
  end

  it "transfers 1 MiB in both directions at the same time" do
    data = Random.new(5).bytes(1 << 20)
    received = {}
    Heddle.run do
      accept_each(server, 1) do |socket|
        received[:server] = socket.read(data.bytesize)
        socket.write(data)
      end
      client = connect
      client.write(data)
      received[:client] = client.read(data.bytesize)
      client.close
    end

    expect([received[:server] == data, received[:client] == data]).to eq([true, true])
  end

  it "ends a reader when the peer has closed" do
    text = Heddle.run do
      accept_each(server, 1) { |socket| socket.write("last words") }
      client = connect
      client.read
    ensure
      client&.close
    end

    expect(text).to eq("last words")
  end

  it "raises SSLError for a certificate that isn't trusted" do
    attempt = lambda do
      Heddle.run do
        Fiber.schedule do
          server.accept
        rescue OpenSSL::SSL::SSLError
          # The client has closed the connection. The example checks the client's error.
        end
        context = trusting
        context.cert_store = OpenSSL::X509::Store.new
        connect(context)
      end
    end

    expect(&attempt).to raise_error(OpenSSL::SSL::SSLError, /certificate verify failed/)
  end

  it "works in a fiber that uses the non-blocking methods and waits by itself" do
    text = Heddle.run do
      accept_each(server, 1) do |socket|
        socket.gets
        socket.write("answer")
      end
      client = connect
      first = client.read_nonblock(100, exception: false)
      client.puts("question")
      client.to_io.wait_readable while (answer = client.read_nonblock(100, exception: false)) == :wait_readable
      [first, answer]
    ensure
      client&.close
    end

    expect(text).to eq([:wait_readable, "answer"])
  end

  it "ends a handshake without a response by a time limit" do
    attempt = lambda do
      Heddle.run do
        silent = TCPServer.new("127.0.0.1", 0)
        socket = TCPSocket.new("127.0.0.1", silent.addr[1])
        Timeout.timeout(0.05) { OpenSSL::SSL::SSLSocket.new(socket, trusting).connect }
      ensure
        [socket, silent].each { |io| io&.close }
      end
    end

    expect(&attempt).to raise_error(Timeout::Error)
  end
end
