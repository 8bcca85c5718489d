# frozen_string_literal: true

require_relative "tcp_echo"

# A minimal HTTP/1.1 server with keep-alive under `wrk -c64`: it reads until the empty line and answers with a fixed
# response. A real web server adds only parsing, so this is the most that a web server can gain.
class Http < TcpEcho
  REQUEST = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: wrk\r\nAccept: */*\r\n\r\n"
  RESPONSE = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
  EMPTY_LINE = "\r\n\r\n"
  CHUNK = 4096

  def initialize(connections: 64, **) = super

  private

  def load = Load.busy(request: REQUEST, answer_size: RESPONSE.bytesize, connections: @connections, seconds: @seconds)

  def converse(socket)
    chunk = +""
    unread = +""
    loop do
      unread << socket.readpartial(CHUNK, chunk)
      while (length = unread.index(EMPTY_LINE))
        unread.slice!(0, length + EMPTY_LINE.size)
        socket.write(RESPONSE)
        yield
      end
    end
  end
end
