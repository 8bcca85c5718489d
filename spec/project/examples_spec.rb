# frozen_string_literal: true

require "net/http"
require "socket"
require "timeout"
require "tmpdir"

RSpec.describe "The example program" do
  include ExamplePrograms

  def read_port(output)
    Integer(output.gets[/127\.0\.0\.1:(\d+)/, 1])
  end

  # Ends the example as Ctrl-C does, and returns the rest of its output.
  def interrupt(output, process)
    Process.kill(:INT, process.pid)
    rest = output.read
    expect(process.value).to be_success, rest
    rest
  end

  describe "echo_server" do
    it "serves one client while another is silent, and ends with Ctrl-C" do
      run_example("echo_server", "0") do |_, output, process|
        port = read_port(output)
        silent = TCPSocket.new("127.0.0.1", port)
        talking = TCPSocket.new("127.0.0.1", port)
        %w[warp weft].each do |word|
          talking.puts(word)
          expect(talking.gets).to eq("#{word}\n")
        end
        silent.puts("at last")
        expect(silent.gets).to eq("at last\n")

        expect(interrupt(output, process)).to eq("Bye.\n")
        expect(talking.gets).to be_nil
      ensure
        [silent, talking].each { |socket| socket&.close }
      end
    end

    it "continues when a client disconnects" do
      run_example("echo_server", "0") do |_, output, process|
        port = read_port(output)
        TCPSocket.open("127.0.0.1", port) do |client|
          client.setsockopt(Socket::Option.linger(true, 0))
          client.puts("unanswered")
        end
        TCPSocket.open("127.0.0.1", port) do |client|
          client.puts("answered")
          expect(client.gets).to eq("answered\n")
        end
        expect(interrupt(output, process)).to eq("Bye.\n")
      end
    end
  end

  describe "stdin_and_clock" do
    it "prints the time while it waits for STDIN, and echoes the input" do
      run_example("stdin_and_clock", "0.1") do |input, output, process|
        3.times { expect(output.gets).to match(/\A\d\d:\d\d:\d\d\n\z/) }
        input.puts("hello")
        # Lines of the clock may come first, but not for long.
        expect(Array.new(10) { output.gets }).to include("You said: hello\n").and include(/\A\d\d:\d\d:\d\d\n\z/)
        input.close
        expect(output.read).to end_with("Bye.\n")
        expect(process.value).to be_success
      end
    end

    it "ends with Ctrl-C" do
      run_example("stdin_and_clock", "0.1") do |_, output, process|
        output.gets
        expect(interrupt(output, process)).to match(/\A(\d\d:\d\d:\d\d\n)*Bye\.\n\z/)
      end
    end
  end

  describe "http_server" do
    it "answers several requests on one connection, and quick requests while a slow one waits" do
      run_example("http_server", "0") do |_, output, process|
        port = read_port(output)
        slow = Thread.new { Net::HTTP.get(URI("http://127.0.0.1:#{port}/slow")) }
        Net::HTTP.start("127.0.0.1", port) do |http|
          3.times { expect(http.get("/").body).to start_with("Hello from fiber") }
          expect(http.post("/nowhere", "a body").code).to eq("404")
          expect(http.get("/")["connection"]).to eq("keep-alive")
        end
        expect(slow).to be_alive
        expect(slow.value).to start_with("That took a second")
        expect(interrupt(output, process)).to eq("Bye.\n")
      end
    end

    it "refuses a request that isn't HTTP" do
      run_example("http_server", "0") do |_, output, process|
        TCPSocket.open("127.0.0.1", read_port(output)) do |client|
          client.puts("Who's there?")
          expect(client.read).to start_with("HTTP/1.1 400 Bad Request\r\n").and include("Connection: close\r\n")
        end
        expect(interrupt(output, process)).to eq("Bye.\n")
      end
    end
  end

  describe "concurrent_gets" do
    it "gets the answer of the quickest host first, although it asks the slowest first" do
      run_example("concurrent_gets", "1.2") do |_, output, process|
        *answers, total = output.readlines(chomp: true)
        expect(process.value).to be_success
        # One after another, the slowest would answer first.
        expect(answers.map { |line| line[/I am (\w+)/, 1] }).to eq(%w[quick brisk easy lazy slow])
        expect(total).to match(/in [\d.]+ s.*One after another: 3\.1 s\.\z/)
      end
    end

    it "ends with Ctrl-C" do
      run_example("concurrent_gets", "30") do |_, output, process|
        output.gets
        expect(interrupt(output, process)).to end_with("Bye.\n")
      end
    end
  end

  describe "trace" do
    it "makes a trace of the server, its clients and the fiber that computes" do
      Dir.mktmpdir do |folder|
        path = File.join(folder, "trace.json")
        run_example("trace", path, "0.1") do |_, output, process|
          expect(output.read).to match(/\A\S+ has \d+ events of 0\.\d s; 0 were dropped\.\nOpen it at/)
          expect(process.value).to be_success
        end
        trace = TraceFile.read(path)
        expect(trace.names("thread")).to include("fib", "accept", "client 1", "client 2", "GET /fib")
        expect(trace.events("i").map { |event| event["name"] }).to include("preempted")
        expect(trace.overlaps).to be_empty
      end
    end
  end

  describe "explore" do
    it "tells how the bank loses a withdrawal, as docs/testing.md shows it" do
      documented = File.read(File.join(ExamplePrograms::ROOT, "docs/testing.md"), encoding: Encoding::UTF_8)
      run_example("explore", "bank") do |_, output, process|
        report = output.read.sub(/ ruby .*explore/, " ruby explore").gsub("examples/", "").gsub(/ +/, " ").strip
        expect(documented.gsub(/ +/, " ")).to include("```text\n#{report}\n```")
        expect(process.value).to be_success
      end
    end

    it "finds the schedule in which the cache computes a value twice" do
      run_example("explore", "cache") do |_, output, process|
        expect(output.read).to match(/\Acomputed 2 times .*one switch is enough:.*^  A .*^  B .*^  A /m)
        expect(process.value).to be_success
      end
    end

    it "finds the schedule in which the pool has no connection any more" do
      run_example("explore", "pool") do |_, output, process|
        expect(output.read).to match(/\Aundefined method .*one switch is enough:.*^  request .*^  test .*^  request /m)
        expect(process.value).to be_success
      end
    end
  end

  describe "preemption" do
    it "lets two sleepers and a web server run beside CPU-bound fibers", timeout: 180 do
      run_example("preemption", "1.5") do |_, output, process|
        rows = output.readlines(chomp: true).to_h do |line|
          [line[/\A *(.*?)  +/, 1], line.scan(/(\d+(?:\.\d+)?)(?: m?s)?(?=  |\z)/).flatten.map { |each| Float(each) }]
        end
        expect(process.value).to be_success
        expect(rows["a sleep of 1 s took"]).to match([be >= 1, be >= 1])
        expect(rows["answers meanwhile"].reduce(:<)).to be(true)
      end
    end

    it "answers /hello while it computes /fib, and ends with Ctrl-C" do
      run_example("preemption", "--serve", "0") do |_, output, process|
        port = read_port(output)
        get = ->(path) { Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}")) }
        TCPSocket.open("127.0.0.1", port) do |computing|
          computing.write("GET /fib HTTP/1.1\r\n\r\n")
          expect(get.call("/hello")).to eq("hello\n")
          expect(computing.wait_readable(0)).to be_nil
          expect(computing.read).to match(/fib\(\d+\) = \d+\n\z/)
        end
        expect(interrupt(output, process)).to eq("Bye.\n")
      end
    end
  end
end
