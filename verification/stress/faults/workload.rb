# frozen_string_literal: true

# Uses every system call of Heddle, and prints the outcome of each part: `right`, the class of an error, or `WRONG` with
# what was wrong. Starts when a line comes on stdin, so that faults.rb can change the kernel's results from then
# on.

require "English"
require "heddle"
require "socket"
require "tempfile"
require "timeout"

# The errors that a program may get when the kernel refuses a call.
CLEAN = [
  SystemCallError, IOError, NoMemoryError, ThreadError, FiberError, Socket::ResolutionError, Heddle::Error
].freeze

# rubocop:disable Naming/PredicateMethod -- the parts are named by what they do

# The parts. Each returns whether its result was right.
module Parts
  DATA = Random.new(1).bytes(300_000)

  module_function

  def sockets
    one, other = UNIXSocket.pair
    fed(one, DATA) { other.read == DATA }
  end

  def server
    server = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    accepted = server.accept
    fed(accepted, "answer") { client.read == "answer" }
  end

  def pipes
    reader, writer = IO.pipe(binmode: true)
    fed(writer, DATA) { reader.read == DATA }
  end

  def files
    Tempfile.create(binmode: true) do |file|
      file.write(DATA)
      file.flush
      file.pwrite("patch", 100)
      file.rewind
      file.read == DATA.dup.tap { |data| data[100, 5] = "patch" } && file.pread(5, 100) == "patch"
    end
  end

  def interrupted
    reader, writer = IO.pipe
    begin
      Timeout.timeout(0.02) { reader.read(4) }
    rescue Timeout::Error
      writer.write("text")
      reader.read(4) == "text"
    end
  end

  def closed
    one, other = UNIXSocket.pair
    waiter = Fiber.schedule { other.read(10) rescue IOError } # rubocop:disable Style/RescueModifier
    other.close
    one.close
    sleep(0.001) while waiter.alive?
    true
  end

  def timers
    fibers = Array.new(20) { |number| Fiber.schedule { sleep(number * 0.001) } }
    fibers.each { |fiber| join(fiber) }.none?(&:alive?)
  end

  def queues
    queue = Thread::Queue.new
    Thread.new { 5.times { |number| queue << number } }
    Array.new(5) { queue.pop } == [0, 1, 2, 3, 4]
  end

  # The child is traced, too, and may fail.
  def children
    pid = spawn("exit 3")
    Process.wait2(pid).first == pid
  end

  def names = Addrinfo.getaddrinfo("127.0.0.1", 80, nil, :STREAM).first.ip_port == 80

  def select
    reader, writer = IO.pipe
    fed(writer, "x") { IO.select([reader], nil, nil, 5) == [[reader], [], []] }
  end

  def computing
    computed = Array.new(3) { YieldingFiber.schedule { 100_000.times { |number| Integer.sqrt(number) } } }
    computed.each { |fiber| join(fiber) }
    true
  end

  # Returns the block's value while a fiber writes, or raises the error of the write.
  def fed(writer, data)
    error = nil
    feeder = Fiber.schedule do
      writer.write(data)
    rescue *CLEAN => e
      error = e
    ensure
      writer.close
    end
    begin
      result = yield
    ensure
      writer.close if $ERROR_INFO
      join(feeder)
    end
    error ? raise(error) : result
  end

  def join(fiber)
    sleep(0.001) while fiber.alive?
  end
end

# rubocop:enable Naming/PredicateMethod

# The outcomes, by part.
OUTCOMES = {} # rubocop:disable Style/MutableConstant

def play(part)
  OUTCOMES[part] = Parts.public_send(part) ? "right" : "WRONG"
rescue *CLEAN => e
  OUTCOMES[part] = e.class
rescue StandardError => e
  OUTCOMES[part] = "WRONG #{e.class}: #{e.message}"
end

def report
  OUTCOMES.each do |part, outcome|
    $stdout.syswrite("#{part} #{outcome}\n")
  rescue Errno::EINTR
    retry
  end
end

# Lets any process trace this one. Some systems let only ancestors trace, and strace is none.
PR_SET_PTRACER = 0x59616d61
PRCTL = 157
begin
  syscall(PRCTL, PR_SET_PTRACER, -1)
rescue SystemCallError
  # This kernel doesn't restrict tracing.
end

# verification/stress/faults.rb sends SIGQUIT to a program that hangs.
trap("QUIT") do
  report
  [*Thread.list, *ObjectSpace.each_object(Fiber)].each { |strand| warn strand.inspect, *strand.backtrace }
  exit!(1)
end

Thread.report_on_exception = false
Heddle.run { Parts.timers }
$stdout.syswrite("ready\n")
$stdin.gets
begin
  Heddle.run do
    (Parts.singleton_methods - %i[fed join]).each do |part|
      OUTCOMES[part] = "not over"
      Fiber.schedule { play(part) }
    end
  end
  OUTCOMES[:program] = "right"
rescue *CLEAN => e
  OUTCOMES[:program] = "#{e.class}: #{e.message}"
end
report
