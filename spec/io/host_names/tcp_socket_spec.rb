# frozen_string_literal: true

require "open3"
require "socket"
require "timeout"

RSpec.describe "TCPSocket.new of a host with several addresses" do
  # Replaces the resolver. The names are made up. On Linux all of 127.0.0.0/8 is this machine.
  let(:scheduler_class) do
    addresses = self.addresses
    Class.new(Heddle::Scheduler) { define_method(:address_resolve) { |name| addresses.fetch(name) { super(name) } } }
  end
  let(:addresses) { { "second.test" => %w[127.0.0.2 127.0.0.1], "full.test" => %w[127.0.0.3 127.0.0.4] } }
  let(:server) { TCPServer.new("127.0.0.1", 0) }
  let(:port) { server.local_address.ip_port }

  after { server.close unless server.closed? }

  def run(&block)
    Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler_class.new)
      value = nil
      error = nil
      Fiber.schedule do
        value = block.call
      rescue StandardError => e
        error = e
      end
      Fiber.scheduler.run
      error ? raise(error) : value
    end.value
  end

  # Connections to these addresses are never established: the queue of unaccepted connections is full.
  def with_full_servers(*addresses)
    sockets = [*addresses, "127.0.0.9"].map { |address| full_server(address) }
    yield sockets.first.first.local_address.ip_port
  ensure
    sockets&.flatten&.each(&:close)
  end

  def full_server(address)
    server = Socket.new(:INET, :STREAM)
    server.bind(Addrinfo.tcp(address, @full_port || 0))
    @full_port ||= server.local_address.ip_port
    server.listen(0)
    clients = Array.new(3) { Socket.new(:INET, :STREAM) }
    clients.each { |client| client.connect_nonblock(server.local_address, exception: false) }
    [server, *clients]
  end

  it "tries the next address when one refuses" do
    peer = run { TCPSocket.open("second.test", port) { |socket| socket.peeraddr.last } }

    expect(peer).to eq("127.0.0.1")
  end

  it "lets other fibers run while it waits" do
    runs = 0
    with_full_servers("127.0.0.3", "127.0.0.4") do |port|
      run do
        counter = Fiber.schedule { loop { sleep(a_moment) && (runs += 1) } }
        TCPSocket.new("full.test", port, connect_timeout: 0.1)
      rescue IO::TimeoutError, Errno::ETIMEDOUT
        counter.kill
      end
    end

    expect(runs).to be_positive
  end

  it "is ended by Timeout.timeout, and leaves no descriptor behind" do
    with_full_servers("127.0.0.3", "127.0.0.4") do |port|
      # Earlier examples may have left IOs that are collected meanwhile.
      GC.start
      open = -> { Dir.children("/dev/fd").size }
      before = open.call
      timed_out = Array.new(3) do
        run { Timeout.timeout(0.05) { TCPSocket.new("full.test", port) } }
      rescue Timeout::Error
        :timed_out
      end

      expect(timed_out).to eq([:timed_out] * 3)
      expect(open.call).to be <= before
    end
  end

  it "is ended by Fiber#kill" do
    ended = false
    with_full_servers("127.0.0.3", "127.0.0.4") do |port|
      run do
        fiber = Fiber.schedule do
          TCPSocket.new("full.test", port)
        ensure
          ended = true
        end
        sleep(a_moment)
        fiber.kill
      end
    end

    expect(ended).to be(true)
  end

  it "is ended by Fiber#raise" do
    with_full_servers("127.0.0.3", "127.0.0.4") do |port|
      error = run do
        rescued = nil
        fiber = Fiber.schedule do
          TCPSocket.new("full.test", port)
        rescue IOError => e
          rescued = e
        end
        sleep(a_moment)
        fiber.raise(IOError, "enough")
        rescued
      end

      expect(error).to have_attributes(message: "enough")
    end
  end

  it "names the host that refused in its error" do
    with_refusing_address do |address|
      expect { run { TCPSocket.new("second.test", address.ip_port) } }
        .to raise_error(Errno::ECONNREFUSED, /connect\(2\) for "second\.test" port #{address.ip_port}/)
    end
  end

  it "returns a socket of the class it was called on" do
    subclass = Class.new(TCPSocket) do
      attr_reader :name

      def initialize(name, ...)
        @name = name
        super
      end
    end
    socket = run { subclass.new("second.test", port) }

    expect(socket).to be_an_instance_of(subclass).and have_attributes(name: "second.test", closed?: false)
  ensure
    socket&.close
  end

  it "returns a socket with the same properties as Ruby's own" do
    looks = lambda do |socket|
      %i[sync binmode? external_encoding do_not_reverse_lookup autoclose? close_on_exec? timeout]
        .map { |name| socket.public_send(name) }
    end
    made = run { TCPSocket.new("second.test", port) }
    expected = TCPSocket.new("127.0.0.1", port)

    expect(looks[made]).to eq(looks[expected])
  ensure
    [made, expected].each { |socket| socket&.close }
  end

  it "connects from the given local address" do
    from = run { TCPSocket.open("second.test", port, "127.0.0.5", 0) { |socket| socket.addr.last } }

    expect(from).to eq("127.0.0.5")
  end

  it "works in a forked child whose parent was connecting" do
    message = in_child do
      Heddle.run do
        Fiber.schedule { TCPSocket.new("localhost", port).close }
        reader, writer = IO.pipe
        pid = fork do
          # A numeric address: glibc's resolver may hold a lock when the process forks, with plain Ruby, too.
          writer.write(TCPSocket.new("127.0.0.1", port).class)
          exit!(true)
        end
        writer.close
        Process.wait(pid)
        reader.read
      end
    end

    expect(message).to eq("TCPSocket")
  end

  it "is Ruby's own method in a Ractor" do
    output, errors = run_ruby(<<~RUBY)
      require "heddle"
      Warning[:experimental] = false
      server = TCPServer.new("127.0.0.1", 0)
      ractor = Ractor.new(server.local_address.ip_port) do |port|
        [TCPSocket.new("localhost", port).peeraddr[0], Addrinfo.tcp("localhost", "http").ip_port,
         Addrinfo.tcp("127.0.0.1", 80).getnameinfo[1], IPSocket.getaddress("127.0.0.1")]
      end
      p(ractor.respond_to?(:value) ? ractor.value : ractor.take)
    RUBY

    expect([output, errors]).to eq([%(["AF_INET", 80, "http", "127.0.0.1"]\n), ""])
  end

  it "can be replaced by a library that keeps the method under another name" do
    output, errors = run_ruby(<<~RUBY)
      require "heddle"
      class TCPSocket
        alias original_initialize initialize
        def initialize(host, *) = original_initialize(host.delete_prefix("prefix."), *)
      end
      server = TCPServer.new("127.0.0.1", 0)
      connect = -> { TCPSocket.open("prefix.localhost", server.local_address.ip_port) { |socket| socket.peeraddr[0] } }
      p [Heddle.run(&connect), connect.call]
    RUBY

    expect([output, errors]).to eq([%(["AF_INET", "AF_INET"]\n), ""])
  end
end
