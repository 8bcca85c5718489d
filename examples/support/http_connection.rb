# frozen_string_literal: true

# Answers the HTTP/1.1 requests of one client: the server side of the examples, the demo and the specs.
#
#   HttpConnection.new(server.accept).serve { |request| [200, "You asked for #{request.path}\n"] }
#
# The block gets a request, and returns the status and the body of the answer. The code is ordinary blocking Ruby: it
# runs in any thread, and under Heddle in a fiber per connection.
class HttpConnection
  LONGEST_LINE = 8192
  MOST_HEADERS = 100
  # Bytes; a request with more is refused.
  LARGEST_BODY = 4 * 1024 * 1024
  REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 413 => "Content Too Large" }.freeze

  Request = Data.define(:verb, :path, :version, :headers, :body) do
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

  # @param idle [Numeric, nil] seconds that a client may wait between two requests
  # @param keep_alive [Boolean] whether a connection may have more than one request
  def initialize(client, idle: nil, keep_alive: true)
    @client = client
    @client.timeout = idle if idle
    @keep_alive = keep_alive
  end

  # Answers requests until one side closes the connection.
  def serve(&)
    nil while answer_next(&)
  rescue IO::TimeoutError, SystemCallError
    # The client was idle for too long, or has gone: it expects no answer.
  ensure
    @client.close
  end

  private

  # Whether the connection stays open for another request.
  def answer_next
    request = read_request or return false
    stay = @keep_alive && request.keep_alive?
    respond(*yield(request), keep_alive: stay)
    stay
  rescue Refused => e
    respond(e.status, "#{e.message}\n", keep_alive: false)
    false
  end

  # Returns nil at the end of the connection.
  def read_request
    line = read_line or return
    match = line.match(%r{\A(?<verb>[A-Z]+) (?<path>\S+) (?<version>HTTP/1\.[01])\z}) or raise Refused, 400
    headers = read_headers
    Request.new(match[:verb], match[:path], match[:version], headers, read_body(headers))
  end

  def read_headers
    headers = {}
    until (line = read_line || raise(Refused, 400)).empty?
      name, value = line.split(":", 2)
      raise Refused, 400 if value.nil? || headers.size == MOST_HEADERS

      headers[name.downcase] = value.strip
    end
    headers
  end

  def read_body(headers)
    raise Refused, 400 if headers.key?("transfer-encoding")

    length = Integer(headers.fetch("content-length", "0"), 10, exception: false)
    raise Refused, 400 unless length&.>=(0)
    raise Refused, 413 if length > LARGEST_BODY

    @client.read(length)
  end

  def read_line
    line = @client.gets("\n", LONGEST_LINE) or return
    raise Refused, 400 unless line.end_with?("\n")

    line.chomp
  end

  def respond(status, body, keep_alive:)
    head = ["HTTP/1.1 #{status} #{REASONS.fetch(status)}", "Content-Type: text/plain; charset=utf-8",
            "Content-Length: #{body.bytesize}", "Connection: #{keep_alive ? "keep-alive" : "close"}"]
    @client.write("#{head.join("\r\n")}\r\n\r\n#{body}")
  end
end
