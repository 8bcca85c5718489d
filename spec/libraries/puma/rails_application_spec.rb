# frozen_string_literal: true

# Each example waits for the requests of others, so an answer that needs the whole thread would make it hang.
RSpec.describe "A Rails application on PostgreSQL, in Puma with plugin :heddle" do
  include PumaServers

  application = File.read(File.expand_path("../../support/applications/rails.ru", __dir__))
  cable_client = File.expand_path("../../support/cable_client.rb", __dir__)

  before(:context) do
    @database = DatabaseServer.postgres
    @server = start(application) if @database
  end

  before do
    skip_or_fail_without("the server of PostgreSQL") unless @database
    skip_or_fail_without("rails") unless server
  end

  after(:context) { [@server, @database].compact.each(&:stop) }

  attr_reader :server

  # @return [PumaServer, nil] nil where a library is missing
  def start(application)
    url = "postgresql:///postgres?host=#{@database.folder}&user=postgres&pool=40"
    environment = { "RAILS_ENV" => "test", "DATABASE_URL" => url, "SOLID_SRC" => ENV.fetch("SOLID_SRC", nil) }
    PumaServer.new(application, solid_queue, env: environment)
  rescue PumaServer::Missing
    nil
  end

  # Puma's plugin of Solid Queue runs the jobs in processes that it forks.
  def solid_queue
    trees = ENV.fetch("SOLID_SRC", nil)
    trees ? "$LOAD_PATH.unshift(#{File.join(trees, "solid_queue/lib").dump})\nplugin :solid_queue" : ""
  end

  # Sends a request that pauses in its middle, runs the block meanwhile, and returns the request's answer.
  def paused(path)
    word = File.basename(path)
    answer = Thread.new { server.get(path) }
    server.get("/pop/#{word}%20paused")
    yield
    server.get("/push/#{word}%20continues")
    answer.value
  end

  # Stores a file, and returns its two paths.
  def store(name, text)
    head = "POST /files/#{name} HTTP/1.0\r\ncontent-type: text/plain\r\ncontent-length: #{text.bytesize}\r\n\r\n"
    server.request(head + text).split("\r\n\r\n", 2).last.lines(chomp: true)
  end

  # @return [String] the path to which a request is redirected
  def redirected(path)
    server.request("GET #{path} HTTP/1.0\r\nhost: localhost\r\n\r\n")[%r{^location: http://localhost(\S+)}i, 1]
  end

  # @return [Array] the block's values, each from a thread of its own
  def at_once(count, &) = Array.new(count) { |number| Thread.new(number, &) }.map(&:value)

  def read_until(socket, text)
    read = +""
    read << socket.readpartial(10_000) until read.include?(text)
    read
  end

  it "sends events of ActionController::Live::SSE to several clients, each on a fiber" do
    sockets = %w[left right].to_h do |word|
      socket = TCPSocket.open("127.0.0.1", server.port)
      socket.write("GET /events/#{word} HTTP/1.1\r\nhost: localhost\r\n\r\n")
      [word, socket]
    end
    sockets.each { |word, socket| read_until(socket, %({"word":"#{word}"})) }
    events = sockets.to_a.reverse.map do |word, socket|
      server.get("/push/#{word}")
      read_until(socket, "\r\n0\r\n\r\n")
    end

    expect(events).to all(include("event: turn", "id: 2", %(data: {"on":"Heddle::Scheduler"}\n\n)))
  ensure
    sockets&.each_value(&:close)
  end

  it "broadcasts what a request says to each subscriber of Action Cable" do
    messages = printed(<<~RUBY, library: "websocket/driver")
      require #{cable_client.inspect}
      clients = Array.new(3) { CableClient.new(#{server.port}) }
      clients.each { |client| client.subscribe("WordsChannel") }
      TCPSocket.open("127.0.0.1", #{server.port}) { |socket| socket.write("GET /say/hello HTTP/1.0\\r\\n\\r\\n") && socket.read }
      clients.each { |client| puts client.message }
    RUBY
    expect(messages).to eq "hello\n" * 3
  end

  it "stores files of several requests at once, and sends them by a redirect and by a proxy" do
    results = at_once(6) do |number|
      text = "#{number} " * 100_000
      redirect, proxy = store("file#{number}", text)
      [redirected(redirect), proxy].map { |path| server.get(path) == text }
    end

    expect(results).to all(eq([true, true]))
  end

  it "runs a job while the request that has enqueued it waits" do
    expect(at_once(5) { |number| server.get("/perform/job#{number}") }).to all(eq("1"))
  end

  it "loads a relation by load_async while the request sends other queries" do
    server.get("/write/beside")
    expect(server.get("/beside/beside")).to eq "1"
  end

  it "keeps Active Record's query cache of a request from others" do
    counts = paused("/count_twice/query") { server.get("/write/query") }
    expect([counts, server.get("/count/query")]).to eq ["0 0", "1"]
  end

  it "keeps the local cache of a request from others" do
    inner = nil
    outer = paused("/local/outer") { inner = paused("/local/inner") { server.get("/push/unrelated") } }
    expect([outer, inner]).to eq ["outer outer", "inner inner"]
  end

  it "counts in Rails.cache what requests increment at once" do
    server.get("/keep/sum?value=0")
    at_once(20) { server.get("/increment/sum") }
    expect(server.get("/kept/sum")).to eq "20"
  end

  it "rolls back the transaction of one request, and of no other" do
    paused("/roll_back/undone") { server.get("/write/done") }
    expect(%w[undone done].map { |word| server.get("/count/#{word}") }).to eq %w[0 1]
  end
end
