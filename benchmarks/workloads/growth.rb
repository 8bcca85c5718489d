# frozen_string_literal: true

require_relative "tcp_echo"

# What an echo costs the server, in CPU time, when it has 10, 100, 1,000 or 10,000 connections. However many there are,
# ten of them wait for an answer at any time, each in its turn: what grows is only what the scheduler has to keep, to
# look up, and to find again in caches that it no longer fits into.
#
# The bare limit is a server that knows who comes next, and waits for nobody else: so much the kernel's own part grows.
#
# Measured from the moment that all connections have had their first answer until shortly before the clients go.
class Growth < TcpEcho
  WINDOW = 10
  BESIDES = 100

  def initialize(connections:, seconds: 2) = super

  # The CPU's clock is a system call, so it isn't asked for every answer.
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

  # Nobody schedules: the clients go in turn, so the server can wait for each in turn.
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

  # The first answers take as long as it takes to connect; the clients themselves wait until each has come.
  def in_time = Float::INFINITY

  def load
    Load.turning(request: MESSAGE, answer_size: SIZE, connections: @connections, seconds: @seconds, window: WINDOW)
  end

  def converse(socket)
    super do
      count
      yield
    end
  end

  # From when all have had their first answer, to the last answer but a few: closing thousands of connections is dear.
  def count
    @answers += 1
    @started = Clock.cpu if @answers == @connections
    return unless (@answers % EVERY).zero?

    @stopped = Clock.cpu
    @counted = @answers
  end
end
