# frozen_string_literal: true

RSpec.describe "Puma with plugin :heddle" do
  include PumaServers

  app = <<~'RUBY'
    use Rack::Lint if ENV["LINT"]
    # Each example has one of its own, which the query names.
    State = Struct.new(:gate, :arrived, :stop)
    states = Hash.new { |all, name| all[name] = State.new(Thread::Queue.new, 0, false) }
    text = { "content-type" => "text/plain" }
    run(lambda do |env|
      state = Heddle.without_preemption { states[env["QUERY_STRING"]] }
      case env["PATH_INFO"]
      when "/hello" then [200, text.dup, ["hello"]]
      when "/where" then [200, text.dup, ["#{Fiber.scheduler.class} #{Thread.current.name}"]]
      when %r{/names}
        [200, text.dup, [Heddle.fibers.select { |each| each.state == :running }.map(&:name).inspect]]
      when "/wait"
        state.arrived += 1
        state.gate.pop
        [200, text.dup, ["waited"]]
      when "/arrived" then [200, text.dup, [state.arrived.to_s]]
      when "/open" then state.arrived.times { state.gate << true }; [200, text.dup, ["opened"]]
      when "/compute"
        state.arrived += 1
        nil until state.stop
        [200, text.dup, ["computed"]]
      when "/stop" then state.stop = true; [200, text.dup, ["stopped"]]
      when "/echo" then [200, text.dup, [env["rack.input"].read]]
      when "/stream"
        body = Enumerator.new do |out|
          state.arrived += 1
          out << "first\n"
          state.gate.pop
          out << "second\n"
        end
        [200, text.dup, body]
      when "/partial"
        [200, text.merge("rack.hijack" => ->(io) { io.write("hijacked"); io.close }), []]
      when "/full"
        io = env["rack.hijack"].call
        Fiber.schedule { io.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfull"); io.close }
        [200, {}, []]
      when "/hints"
        env["rack.early_hints"]&.call("link" => "</style.css>; rel=preload")
        [200, text.dup, ["hinted"]]
      when "/raise" then raise "the application's error"
      else [404, text.dup, []]
      end
    end)
  RUBY

  share_server(app, "early_hints true")

  # Waits until as many requests with this query wait.
  def wait_until_arrived(query, count)
    Timeout.timeout(PumaServer::LIMIT) { nil until server.get("/arrived?#{query}").to_i >= count }
  end

  it "runs requests on fibers of a Heddle scheduler" do
    expect(server.get("/where")).to eq "Heddle::Scheduler puma srv"
  end

  it "handles a hundred requests that wait at the same time" do
    clients = Array.new(100) { Thread.new { server.get("/wait?hundred") } }
    wait_until_arrived("hundred", 100)
    server.get("/open?hundred")

    expect(clients.map(&:value)).to all eq "waited"
  end

  it "answers other requests while one computes" do
    computing = Thread.new { server.get("/compute?one") }
    wait_until_arrived("one", 1)
    server.get("/stop?one")

    expect(computing.value).to eq "computed"
  end

  it "names a request's fiber by its method and path, without the query and what may be secret" do
    paths = {
      "/names?token=secret" => "/names", "/names/7/my-first_post.v2.html" => "/names/7/my-first_post.v2.html",
      "/names/XyzaBcDeFghijkLm/API/MakeHat" => "/names/:id/API/MakeHat", "/names/%41da" => "/names/:id",
      "/names/3f9a8c1d.js" => "/names/:id.js", "/names/ada@example.org/" => "/names/:id.org/",
      "/names/4915112345678" => "/names/:id",
      "/names/#{"#{"a" * 19}-" * 9}!" => "/names/:id"
    }

    expect(paths.keys.map { |path| server.get(path) }).to eq(paths.values.map { |path| [%(GET #{path})].inspect })
  end

  it "answers pipelined requests in their order" do
    requests = %w[a bc].map { |body| "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: #{body.size}\r\n\r\n#{body}" }
    last = "GET /hello HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"

    expect(server.request(requests.join + last).scan(/\r\n\r\n(a|bc|hello)/).flatten).to eq %w[a bc hello]
  end

  it "keeps a connection open between requests" do
    answers = server.connect do |socket|
      Array.new(3) do
        socket.write("GET /hello HTTP/1.1\r\nhost: h\r\n\r\n")
        socket.readpartial(1000)[/hello\z/]
      end
    end

    expect(answers).to eq %w[hello hello hello]
  end

  it "reads a chunked request that arrives in parts" do
    answer = server.connect do |socket|
      ["POST /echo HTTP/1.1\r\nhost: h\r\nconnec", "tion: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
       "c\r\n2\r\nde\r\n", "0\r\n\r\n"].each do |part|
        socket.write(part)
        server.get("/hello")
      end
      socket.read
    end

    expect(answer).to end_with "\r\n\r\nabcde"
  end

  it "sends each part of a streamed response at once" do
    server.connect do |socket|
      socket.write("GET /stream?parts HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
      read = +""
      Timeout.timeout(PumaServer::LIMIT) { read << socket.readpartial(1000) until read.include?("first\n") }
      server.get("/open?parts")

      expect(socket.read).to include "second\n"
    end
  end

  it "hands a connection to a partial hijack" do
    expect(server.get("/partial")).to eq "hijacked"
  end

  it "hands a connection to a full hijack, which another fiber uses" do
    expect(server.get("/full")).to eq "full"
  end

  it "sends early hints" do
    answer = server.request("GET /hints HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")

    expect(answer).to match(/103 Early Hints\r\nlink: .*200 OK.*hinted/m)
  end

  it "answers 500 to an error of the application, and serves on" do
    expect([server.get("/raise"), server.get("/hello")]).to match [/the application's error/, "hello"]
  end

  it "refuses a header whose name is too long, and serves on" do
    answer = server.request("GET /hello HTTP/1.1\r\n#{"x" * 300}: y\r\n\r\n")

    expect([answer[0, 12], server.get("/hello")]).to eq ["HTTP/1.1 400", "hello"]
  end

  it "serves on when a client goes away in the middle of a request" do
    server.connect { |socket| socket.write("POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\nabc") }

    expect(server.get("/hello")).to eq "hello"
  end

  it "tells the control server how many connections there are and how late fibers run" do
    server.connect do |socket|
      socket.write("GET /hello HTTP/1.1\r\nhost: h\r\n\r\n")
      socket.readpartial(1000)

      expect(server.wait_for_stats("waiting" => 1, "busy_threads" => 0)).to include(
        "fibers" => 1, "max_threads" => 512, "lag_us" => Integer
      )
    end
  end
end
