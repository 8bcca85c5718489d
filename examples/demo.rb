# frozen_string_literal: true

# The program of bin/demo, about ten seconds: many concurrent requests that take as long as one, a thousand cheap
# connections, ten thousand timers, and CPU-bound fibers that do not delay others. All figures are measured while you
# watch, on real sockets of this machine.
#
#   ruby -Ilib examples/demo.rb

require "etc"
require "heddle"
require "net/http"
require "socket"
require_relative "demo/board"
require_relative "demo/computing"
require_relative "demo/servers"

REQUESTS = 100
SEQUENTIAL_REQUESTS = 3
DELAY = 0.5
CONNECTIONS = 1_000
ROUND_TRIPS = 500
TIMERS = 10_000

class Demo
  def initialize(servers, board)
    @servers = servers
    @board = board
    @url = URI("http://127.0.0.1:#{servers.http}/")
  end

  def run
    requests
    connections
    timers
    Computing.new(@board).run
  end

  private

  def requests
    @board.title("#{REQUESTS} HTTP requests to a server that takes #{DELAY} s for each")
    alone = seconds { SEQUENTIAL_REQUESTS.times { get } } / SEQUENTIAL_REQUESTS
    total = alone * REQUESTS
    @board.seconds("one after another", total, total, "extrapolated from #{SEQUENTIAL_REQUESTS}")
    @board.seconds("#{REQUESTS} threads", seconds { Array.new(REQUESTS) { Thread.new { get } }.each(&:join) }, total)
    @board.seconds("#{REQUESTS} fibers on Heddle", seconds { on_fibers(REQUESTS) { get } }, total)
  end

  def get
    body = Net::HTTP.get(@url)
    raise "The server answered #{body.inspect}" unless body == "hello"
  end

  def on_fibers(number, &)
    Heddle.run { number.times { Fiber.schedule(&) } }
  end

  def connections
    allow_files(CONNECTIONS * 2)
    @board.title("#{grouped(CONNECTIONS)} connections, a fiber for each")
    Heddle.run do
      before = memory
      sockets = []
      @board.row("opened in", milliseconds(seconds { open_connections(sockets) }))
      @board.row("memory for each", format("%.0f KiB", (memory - before) / CONNECTIONS), "with its fiber") if before
      @board.row("CPU while they idle", format("%.1f %%", idle_cpu * 100))
      show_round_trips(round_trips.sort)
      # The server then closes its side, and the waiting fiber's `gets` returns nil.
      sockets.each { |socket| socket.shutdown(:WR) }
    end
  end

  def open_connections(sockets)
    opened = Queue.new
    CONNECTIONS.times do
      Fiber.schedule do
        TCPSocket.open("127.0.0.1", @servers.echo) do |socket|
          sockets << socket
          opened << true
          socket.gets
        end
      end
    end
    CONNECTIONS.times { opened.pop }
  end

  def round_trips
    TCPSocket.open("127.0.0.1", @servers.echo) do |socket|
      Array.new(ROUND_TRIPS) do
        seconds do
          socket.write("there and back\n")
          socket.gets
        end
      end
    end
  end

  def show_round_trips(sorted)
    @board.row("an echo among them", milliseconds(sorted[sorted.size / 2]),
               "median; 99 of 100 within #{milliseconds(sorted[sorted.size * 99 / 100])}")
  end

  def timers
    @board.title("#{grouped(TIMERS)} fibers that sleep #{DELAY} s")
    elapsed = seconds { on_fibers(TIMERS) { sleep DELAY } }
    @board.row("all done after", format("%.2f s", elapsed), "from the start of the first to the end of the last")
  end

  def seconds(clock = Process::CLOCK_MONOTONIC)
    started = Process.clock_gettime(clock)
    yield
    Process.clock_gettime(clock) - started
  end

  def idle_cpu
    seconds(Process::CLOCK_PROCESS_CPUTIME_ID) { sleep 1 }
  end

  # Resident memory in KiB, or nil where the system does not report it.
  def memory
    File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_f
  rescue SystemCallError
    nil
  end

  # Raises the soft limit of open files, which is low on some systems.
  def allow_files(number)
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, [number, hard].min, hard) if soft < number
  end

  def milliseconds(seconds)
    format("%.2f ms", seconds * 1000)
  end

  def grouped(number)
    number.to_s.reverse.scan(/\d{1,3}/).join(",").reverse
  end
end

backend = Heddle.run { Fiber.scheduler.backend }
puts "Heddle #{Heddle::VERSION} on Ruby #{RUBY_VERSION}, backend #{backend}, #{Etc.nprocessors} cores"

servers = Servers.new(DELAY)
begin
  Demo.new(servers, Board.new).run
rescue Interrupt
  puts "", "Stopped."
ensure
  servers.stop
end
