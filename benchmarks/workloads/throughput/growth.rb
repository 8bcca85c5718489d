# frozen_string_literal: true

require_relative "tcp_echo"

# The server's CPU time of an echo with 10, 100, 1,000 or 10,000 connections. In each case ten connections wait for an
# answer at any time, in rotation. So only what the scheduler stores and looks up grows, and the cache misses on it.
#
# The bare limit is a server that knows which connection is next and reads from that one: it shows the kernel's growth.
#
# Measured from the first answer of the last connection until shortly before the clients disconnect.
class Growth < TcpEcho
  WINDOW = 10
  BESIDES = 100

  def initialize(connections:, seconds: 2) = super

  # Reading the CPU clock is a system call, so it is not read for every answer.
  EVERY = 100

  def measure(contestant)
    limit = Machine.raise_descriptors
    if limit < @connections + BESIDES
      raise LeftOut, "#{@connections} connections need #{@connections + BESIDES} descriptors, the limit is #{limit}"
    end

    @answers = 0
    result = contestant.bare? ? bare : super
    result.merge(cpu_us: (@stopped - @started) / (@counted - @connections) * 1e6)
  rescue ThreadError => e
    raise LeftOut, "#{@connections} connections: #{e.message}"
  end

  private

  # No scheduler: the clients send in rotation, so the server can wait for each connection in the same order.
  def bare
    listener = TCPServer.new("127.0.0.1", 0)
    listener.listen(Server::BACKLOG)
    clients = load.start(listener.local_address.ip_port)
    sockets = Array.new(@connections) { listener.accept }
    go_round(sockets)
    report = load.report_of(clients.read)
    check(report, @answers)
    report.merge(fibers: 0, starved: 0)
  end

  def go_round(sockets)
    buffer = +""
    sockets.cycle do |socket|
      socket.write(socket.readpartial(SIZE, buffer))
      count
    end
  rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
    sockets.each(&:close)
  end

  # The first answers take as long as connecting takes, so no limit applies; the clients wait for each of them.
  def in_time = Float::INFINITY

  def load
    Load.rotating(request: MESSAGE, answer_size: SIZE, connections: @connections, seconds: @seconds, window: WINDOW)
  end

  def converse(socket)
    super do
      count
      yield
    end
  end

  # From the first answer of the last connection to shortly before the end: closing thousands of connections is slow.
  def count
    @answers += 1
    @started = Clock.cpu if @answers == @connections
    return unless (@answers % EVERY).zero?

    @stopped = Clock.cpu
    @counted = @answers
  end
end
