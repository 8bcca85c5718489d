# frozen_string_literal: true

require "socket"

RSpec.describe "Host names" do
  # Returns the block's value with a scheduler and without. Ruby's answer without one is the expected one.
  def with_and_without(&block)
    [Heddle.run(&block), yield]
  end

  it "are resolved to the addresses that are found without a scheduler" do
    found, expected = with_and_without { Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:inspect_sockaddr) }

    expect(found).to match_array(expected)
  end

  it "are resolved for one address family on request" do
    found, expected = with_and_without { Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).map(&:ip_address) }

    expect(found).to eq(expected)
  end

  it "are found in /etc/hosts", if: File.readable?("/etc/hosts") do
    entries = File.readlines("/etc/hosts").map { |line| line.sub(/#.*/, "").split }
    names = entries.select { |address, *| address == "127.0.0.1" }.flat_map { |_, *found| found }
    skip "/etc/hosts has no name for 127.0.0.1" if names.empty?
    found = Heddle.run { names.map { |name| Addrinfo.getaddrinfo(name, nil, :INET, :STREAM).map(&:ip_address) } }

    expect(found).to all(include("127.0.0.1"))
  end

  it "are resolved by every method of Ruby that resolves names" do
    found, expected = with_and_without do
      [
        IPSocket.getaddress("localhost"),
        Socket.getaddrinfo("localhost", nil, :INET, :STREAM).map { |entry| entry[3] },
        Addrinfo.tcp("localhost", 80).ip_port,
        Addrinfo.ip("localhost").ip?
      ]
    end

    expect(found).to eq(expected)
  end

  it "that an object converts to, by to_str, are resolved as without a scheduler, with a service by name, too" do
    host = Class.new { def to_str = "localhost" }
    programs = [-> { Socket.getaddrinfo(host.new, "http", nil, :STREAM) },
                -> { Addrinfo.getaddrinfo(host.new, "http", nil, :STREAM).map(&:ip_unpack) },
                -> { Socket.sockaddr_in("http", host.new) }]

    expect(programs.map { |program| Heddle.run(&program) }).to eq programs.map(&:call)
    expect(Socket.method(:pack_sockaddr_in)).to eq Socket.method(:sockaddr_in)
  end

  it "can be connected to" do
    answer = Heddle.run do
      server = TCPServer.new("localhost", 0)
      Fiber.schedule do
        socket = server.accept
        socket.write("found")
        socket.close
      end
      TCPSocket.open("localhost", server.local_address.ip_port, &:read)
    ensure
      server&.close
    end

    expect(answer).to eq("found")
  end

  it "may be numeric addresses" do
    found = Heddle.run { %w[127.0.0.1 ::1].map { |address| Addrinfo.ip(address).ip_address } }

    expect(found).to eq(%w[127.0.0.1 ::1])
  end

  it "may be nil, for any address" do
    found, expected = with_and_without { Addrinfo.getaddrinfo(nil, 80, nil, :STREAM).map(&:inspect_sockaddr) }

    expect(found).to match_array(expected)
  end

  it "that are unknown raise the same error as without a scheduler" do
    # In a fresh Ruby, where the environment tells the resolver to give up soon if no server answers.
    output, = run_ruby(<<~RUBY, env: { "RES_OPTIONS" => "timeout:1 attempts:1" })
      require "heddle"
      require "socket"
      begin
        Heddle.run { Addrinfo.getaddrinfo("nobody.invalid", 80) }
      rescue Socket::ResolutionError => e
        puts e.message
      end
    RUBY

    expect(output).to match(/getaddrinfo/)
  end

  it "that are unknown raise from TCPSocket.new the same error as without a scheduler" do
    output, = run_ruby(<<~RUBY, env: { "RES_OPTIONS" => "timeout:1 attempts:1" })
      require "heddle"
      require "socket"
      begin
        Heddle.run { TCPSocket.new("nobody.invalid", 80) }
      rescue SocketError => e
        puts "raised"
      end
    RUBY

    expect(output).to eq("raised\n")
  end

  it "are resolved while other fibers run" do
    runs = 0
    found = nil
    Heddle.run do
      Fiber.schedule { found = Addrinfo.getaddrinfo("localhost", 80) }
      until found
        runs += 1
        sleep(0)
      end
    end

    expect(runs).to be_positive
  end

  it "are resolved concurrently" do
    found = []
    Heddle.run do
      100.times { Fiber.schedule { found << Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).first.ip_address } }
    end

    expect(found).to eq(["127.0.0.1"] * 100)
  end

  it "are resolved in several threads with schedulers of their own" do
    threads = Array.new(4) do
      Thread.new { Heddle.run { Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).first.ip_address } }
    end

    expect(threads.map(&:value)).to eq(["127.0.0.1"] * 4)
  end

  it "with a null byte in them raise what they raise without a scheduler" do
    expect { Heddle.run { Addrinfo.getaddrinfo("local\0host", 80) } }.to raise_error(ArgumentError, /null byte/)
  end

  it "are returned as an Array of Strings by the hook itself" do
    found = Heddle.run { Fiber.scheduler.address_resolve("localhost") }

    expect(found).to include("127.0.0.1").or include("::1")
  end

  # Ruby 3.3 connects by itself.
  it "leave no descriptor behind if no IO can be made for the answers", if: RUBY_VERSION >= "3.4" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      require "socket"
      class << IO
        def for_fd(*, **) = raise(NoMemoryError, "none left")
      end
      numbers = -> { Dir.children("/proc/self/fd").size }
      Heddle.run do
        before = nil
        20.times do
          TCPSocket.new("localhost", 1)
        rescue NoMemoryError
          before ||= numbers.call
        end
        # The threads that look up close their ends when they are done.
        sleep 0.001 until numbers.call <= before
        puts "closed"
      end
    RUBY
    expect([output, errors]).to eq ["closed\n", ""]
  end

  it "take at most 64 threads at a time, beside those of the system's resolver" do
    gate = Queue.new
    started = Queue.new
    look_up = -> { Heddle.const_get(:HostNames).in_thread { started.push(true) && gate.pop } }
    threads = Thread.list
    most = Heddle.run do
      fibers = Array.new(100) { Heddle.spin(&look_up) }
      64.times { started.pop }
      (Thread.list - threads).size.tap do
        100.times { gate.push(:answer) }
        fibers.each { |fiber| Heddle.await(fiber) }
      end
    end
    expect(most).to eq 64
  end
end
