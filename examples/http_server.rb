# frozen_string_literal: true

# A small HTTP/1.1 server with keep-alive.
#
#   ruby -Ilib examples/http_server.rb [port]      port 8080 unless told otherwise; 0 takes a free one
#
#   curl http://127.0.0.1:8080/                    answers at once
#   curl http://127.0.0.1:8080/slow                answers after a second, and keeps nobody else waiting
#
# Every connection is a fiber, and the code is what one would write for a single client. Ctrl-C ends the server.

require "heddle"
require "socket"

class HttpServer
  # Seconds that a client may keep a connection open without asking for anything.
  IDLE = 15
  LONGEST_LINE = 8192
  MOST_HEADERS = 100
  # Bytes; a request with more is turned away.
  LARGEST_BODY = 1024 * 1024
  REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 413 => "Content Too Large" }.freeze

  Request = Data.define(:verb, :path, :version, :headers) do
    def keep_alive?
      connection = headers["connection"].to_s.downcase
      version == "HTTP/1.1" ? connection != "close" : connection == "keep-alive"
    end
  end

  class Refused < StandardError
    attr_reader :status

    def initialize(status)
      @status = status
      super(REASONS.fetch(status))
    end
  end

  def initialize(server, &application)
    @server = server
    @application = application
  end

  def run
    loop do
      client = @server.accept
      Fiber.schedule { serve(client) }
    end
  end

  private

  def serve(client)
    client.timeout = IDLE
    nil while answer_next(client)
  rescue IO::TimeoutError, SystemCallError
    # Idle for too long, or gone. Either way there is nobody to tell.
  ensure
    client.close
  end

  # Whether the connection stays open for another request.
  def answer_next(client)
    request = read_request(client) or return false
    respond(client, *@application.call(request), keep_alive: request.keep_alive?)
    request.keep_alive?
  rescue Refused => e
    respond(client, e.status, "#{e.message}\n", keep_alive: false)
    false
  end

  # nil if the client has nothing more to ask.
  def read_request(client)
    line = read_line(client) or return
    match = line.match(%r{\A(?<verb>[A-Z]+) (?<path>\S+) (?<version>HTTP/1\.[01])\z}) or raise Refused, 400
    headers = read_headers(client)
    skip_body(client, headers)
    Request.new(match[:verb], match[:path], match[:version], headers)
  end

  def read_headers(client)
    headers = {}
    until (line = read_line(client) || raise(Refused, 400)).empty?
      name, value = line.split(":", 2)
      raise Refused, 400 if value.nil? || headers.size == MOST_HEADERS

      headers[name.downcase] = value.strip
    end
    headers
  end

  # None of our pages has a use for one, but the next request begins behind it.
  def skip_body(client, headers)
    raise Refused, 400 if headers.key?("transfer-encoding")

    length = Integer(headers.fetch("content-length", "0"), 10, exception: false)
    raise Refused, 400 unless length&.>=(0)
    raise Refused, 413 if length > LARGEST_BODY

    client.read(length)
  end

  def read_line(client)
    line = client.gets("\n", LONGEST_LINE) or return
    raise Refused, 400 unless line.end_with?("\n")

    line.chomp
  end

  def respond(client, status, body, keep_alive:)
    client.write(<<~HEAD.gsub("\n", "\r\n"), body)
      HTTP/1.1 #{status} #{REASONS.fetch(status)}
      Content-Type: text/plain; charset=utf-8
      Content-Length: #{body.bytesize}
      Connection: #{keep_alive ? "keep-alive" : "close"}

    HEAD
  end
end

begin
  Heddle.run do
    TCPServer.open("127.0.0.1", Integer(ARGV.fetch(0, 8080))) do |server|
      puts "http://127.0.0.1:#{server.addr[1]}/ is up. Ctrl-C ends it."
      $stdout.flush

      HttpServer.new(server) do |request|
        case request.path
        when "/" then [200, "Hello from fiber #{Fiber.current.object_id}\n"]
        when "/slow"
          sleep 1
          [200, "That took a second, and nobody else had to wait for it\n"]
        else [404, "There is no #{request.path} here\n"]
        end
      end.run
    end
  end
rescue Interrupt
  puts "Bye."
end
