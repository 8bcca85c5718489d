# frozen_string_literal: true

require "net/http"
require "socket"
require_relative "../../examples/support/http_connection"

RSpec.describe "Net::HTTP" do
  let(:server) { TCPServer.new("127.0.0.1", 0) }
  let(:port) { server.local_address.ip_port }

  after { server.close }

  # Serves this many connections, each in a fiber. The block gets the path and the body of the request, and returns the
  # body of the response.
  def serve(connections)
    Fiber.schedule do
      connections.times do
        connection = HttpConnection.new(server.accept)
        Fiber.schedule { connection.serve { |request| [200, yield(request.path, request.body)] } }
      end
    end
  end

  # Connects without a proxy, whatever the environment says.
  def client(**options, &)
    Net::HTTP.start("127.0.0.1", port, nil, nil, nil, nil, { max_retries: 0, **options }, &)
  end

  it "gets from a server in the same thread" do
    body = Heddle.run do
      serve(1) { |path| "this is #{path}" }
      client { |http| http.get("/path").body }
    end

    expect(body).to eq("this is /path")
  end

  it "gets many responses at the same time" do
    asked = 0
    all_asked = Queue.new
    bodies = []
    Heddle.run do
      serve(30) do |path|
        # No request is answered before all have arrived.
        (asked += 1) == 30 ? all_asked.close : all_asked.pop
        path
      end
      30.times { |i| Fiber.schedule { bodies << client { |http| http.get("/#{i}").body } } }
    end

    expect(bodies).to match_array(Array.new(30) { |i| "/#{i}" })
  end

  it "sends a second request over a connection that is kept alive" do
    bodies = Heddle.run do
      serve(1) { |path| path }
      client { |http| %w[/one /two /three].map { |path| http.get(path).body } }
    end

    expect(bodies).to eq(%w[/one /two /three])
  end

  it "posts a body larger than the socket's buffers, and gets it back" do
    data = "x" * (2 << 20)
    body = Heddle.run do
      serve(1) { |_path, text| text }
      client { |http| http.post("/", data).body }
    end

    expect(body == data).to be(true)
  end

  it "streams a response in chunks as they arrive" do
    pieces = []
    Heddle.run do
      next_piece = Queue.new
      Fiber.schedule do
        socket = server.accept
        socket.each_line.find { |line| line == "\r\n" }
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        %w[one two three].each do |piece|
          socket.write("#{piece.size.to_s(16)}\r\n#{piece}\r\n")
          # Sends the next chunk only after this one has arrived.
          next_piece.pop
        end
        socket.write("0\r\n\r\n")
        socket.close
      end
      client do |http|
        http.request_get("/") do |response|
          response.read_body do |piece|
            pieces << piece
            next_piece << true
          end
        end
      end
    end

    expect(pieces).to eq(%w[one two three])
  end

  it "raises ReadTimeout when no response comes in time" do
    attempt = lambda do
      Heddle.run do
        silence = Queue.new
        serve(1) { silence.pop.to_s }
        client(read_timeout: 0.05) { |http| http.get("/") }
      ensure
        silence.close
      end
    end

    expect(&attempt).to raise_error(Net::ReadTimeout)
  end

  it "gets responses of other hosts while one host is silent" do
    results = []
    Heddle.run do
      silence = Queue.new
      answered = 0
      serve(4) do |path|
        path == "/silent" ? silence.pop.to_s : path
      end
      Fiber.schedule do
        client(read_timeout: 30) { |http| results << http.get("/silent").code }
      end
      3.times do |i|
        Fiber.schedule do
          results << client { |http| http.get("/#{i}").body }
          silence.close if (answered += 1) == 3
        end
      end
    end

    expect([results.first(3).sort, results.last]).to eq([%w[/0 /1 /2], "200"])
  end

  # Linux drops connection requests to a full backlog, so that the client waits. Other systems refuse them.
  it "raises OpenTimeout when the connection isn't accepted in time", if: RUBY_PLATFORM.include?("linux") do
    full = Socket.tcp_server_sockets("127.0.0.1", 0).first
    full.listen(0)
    address = full.local_address
    waiting = Array.new(4) do
      Socket.new(:INET, :STREAM).tap { |socket| socket.connect_nonblock(address, exception: false) }
    end
    attempt = lambda do
      Heddle.run do
        Net::HTTP.start("127.0.0.1", address.ip_port, nil, nil, nil, nil, open_timeout: 0.1, max_retries: 0) { nil }
      end
    end

    expect(&attempt).to raise_error(Net::OpenTimeout)
  ensure
    [full, *waiting].each { |socket| socket&.close }
  end

  it "raises EOFError when the server closes without a response" do
    attempt = lambda do
      Heddle.run do
        Fiber.schedule { server.accept.tap(&:gets).close }
        client { |http| http.get("/") }
      end
    end

    expect(&attempt).to raise_error(an_instance_of(EOFError).or(an_instance_of(Errno::ECONNRESET)))
  end
end
