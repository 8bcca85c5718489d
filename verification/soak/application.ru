# frozen_string_literal: true

# What `rake soak` serves: a fast page, one that computes, one that waits, a query, an upload, a WebSocket, and what
# this process has under way.

# While `Digest` loads the class at its first use, another thread or fiber may get it half made.
require "digest/sha2"
require "json"
require "websocket/driver"

# What is opened at the first use would count as growth.
DATABASE = Queue.new
if ENV["DATABASE_URL"]
  require "pg"
  8.times { DATABASE.push(PG.connect(ENV.fetch("DATABASE_URL"))) }
end

TEXT = { "content-type" => "text/plain" }.freeze

# One WebSocket, which sends back each message.
class Echo
  attr_reader :env, :url

  def initialize(env)
    @env = env
    @url = "ws://#{env["HTTP_HOST"]}#{env["PATH_INFO"]}"
    @socket = env["rack.hijack"].call
    @driver = WebSocket::Driver.rack(self)
    @driver.on(:message) { |message| @driver.text(message.data) }
    @driver.on(:close) { @closed = true }
  end

  def write(data) = @socket.write(data)

  def serve
    @driver.start
    @driver.parse(@socket.readpartial(4096)) until @closed
  rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
    # The client has gone.
  ensure
    @socket.close
  end
end

def compute
  turns = 0
  turns += 1 while turns < 500_000
  turns.to_s
end

def query(number)
  connection = DATABASE.pop
  begin
    connection.exec_params("SELECT $1::int * 2, pg_sleep(0.02)", [number]).getvalue(0, 0)
  ensure
    DATABASE.push(connection)
  end
end

def under_way
  GC.start
  JSON.generate(fibers: Heddle.fibers.size, live: GC.stat(:heap_live_slots))
end

run(lambda do |env|
  number = env["QUERY_STRING"]
  case env["PATH_INFO"]
  when "/hello" then [200, TEXT.dup, ["hello #{number}"]]
  when "/compute" then [200, TEXT.dup, [compute]]
  when "/wait" then [200, TEXT.dup, [sleep(0.3) && "waited #{number}"]]
  when "/query" then [200, TEXT.dup, [query(number)]]
  when "/upload" then [200, TEXT.dup, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
  when "/socket" then Echo.new(env).serve.then { [-1, {}, []] }
  when "/under_way" then [200, TEXT.dup, [under_way]]
  end
end)
