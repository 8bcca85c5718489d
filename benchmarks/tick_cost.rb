# frozen_string_literal: true

# The cost of ticks for a CPU-bound fiber, compared with a bare kernel timer; and the cost of preemption in a program
# without yielding fibers.
#
#   ruby -Ilib benchmarks/tick_cost.rb [milliseconds of a tick]      half a minute
#
# Short pieces of the same work run in alternation: undisturbed; with a periodic timer whose signal handler is a C
# library function without effect; and preemptibly, with each ticker, with and without sleepers beside. So other load
# on the machine affects all of them alike, and differences of less than one percent are measurable, unlike between
# runs. The bare timer costs an interrupt: some tens of microseconds on virtual machines. The rest is Heddle's.
#
# Needs 64-bit Linux.

require "fiddle"
require "heddle"

# rubocop:disable Style/OneClassPerFile -- it is read from top to bottom

TICK = Float(ARGV.fetch(0, 1)) / 1000
ROUNDS = 100
WORK = 27

def fibonacci(number) = number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2)

def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

def work
  before = cpu
  fibonacci(WORK)
  cpu - before
end

# A timer whose signal only interrupts the thread.
class BareTimer
  SIGNAL = Signal.list.fetch("ALRM")
  REAL = 0
  MICROSECONDS = 1_000_000

  def initialize
    @set = function("setitimer", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
    handle = function("signal", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
    # abs(3) takes an int, as a handler does, and is async-signal-safe.
    handle.call(SIGNAL, Fiddle::Handle::DEFAULT["abs"])
  end

  def during
    set(TICK)
    yield
  ensure
    set(0)
  end

  private

  def function(name, arguments, result) = Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, result)

  def set(seconds) = @set.call(REAL, [0, (seconds * MICROSECONDS).to_i].pack("q2") * 2, nil)
end

# The same work in a YieldingFiber, on a thread of its own.
class Preempted
  SLEEPERS = [0.001, 0.001, 0.01, 0.01].freeze

  def initialize(sleepers, **options)
    @sleepers = sleepers
    @options = options
  end

  def call = Thread.new { compute }.value

  private

  def compute
    took = nil
    Fiber.set_scheduler(Heddle::Scheduler.new(tick: TICK, **@options))
    @sleepers.each { |seconds| Fiber.schedule { sleep(seconds) until took } }
    Heddle::YieldingFiber.schedule { took = Object.send(:work) }
    Fiber.scheduler.run
    took
  end
end

# Two fibers that switch to each other.
class Switching
  SWITCHES = 40_000

  def initialize(preempt) = @preempt = preempt

  def work
    before = cpu
    Fiber.set_scheduler(Heddle::Scheduler.new(preempt: @preempt))
    2.times { Fiber.schedule { (SWITCHES / 2).times { sleep(0) } } }
    Fiber.scheduler.run
    cpu - before
  end
end

# Each contestant's time when the machine does little else: the tenth percentile, by name.
def undisturbed(contestants)
  took = contestants.transform_values { [] }
  ROUNDS.times do |round|
    contestants.to_a.rotate(round).each { |name, measure| took[name] << measure.call }
  end
  took.transform_values { |times| times.sort[times.size / 10] }
end

def report(took)
  reference = took.values.first
  took.each do |name, seconds|
    puts format("  %<name>-38s %<time>7.2f ms  %<overhead>+6.2f %%",
                name:, time: seconds * 1000, overhead: ((seconds / reference) - 1) * 100)
  end
end

timer = BareTimer.new
outside = {
  "undisturbed" => -> { work },
  "a bare timer" => -> { timer.during { work } }
}
inside = { "in a fiber, undisturbed" => Preempted.new([], preempt: :none) }
%i[signal timerfd].product([[], Preempted::SLEEPERS]) do |ticker, sleepers|
  inside["preemptible, #{ticker}#{", 4 sleepers beside" if sleepers.any?}"] = Preempted.new(sleepers, ticker:)
end

puts "CPU time of the same work, tenth percentile of #{ROUNDS}, ticks of #{TICK * 1000} ms:"
took = undisturbed(outside.merge(inside))
# The address of the stack makes a difference, so work outside and inside fibers have references of their own.
[outside, inside].each { |contestants| report took.slice(*contestants.keys) }

puts "CPU time of #{Switching::SWITCHES} switches without a yielding fiber:"
switching = %i[none yielding].to_h do |preempt|
  ["preempt: :#{preempt}", -> { Thread.new { Switching.new(preempt).work }.value }]
end
report undisturbed(switching)
# rubocop:enable Style/OneClassPerFile
