# frozen_string_literal: true

# What ticks cost a fiber that computes, beside a bare timer of the kernel's, which does nothing at all; and what it
# costs that there might be somebody to preempt, where there is nobody.
#
#   ruby -Ilib benchmarks/tick_cost.rb [milliseconds of a tick]      half a minute
#
# Short pieces of the same work are done in turn: undisturbed; with a periodic timer whose signal is handled by a
# function of the C library that does nothing; and preemptibly, with either ticker, with and without sleepers beside.
# So whatever else the machine does strikes all alike, and differences of less than one percent can be seen, as
# they can't from run to run. What a bare timer costs is the price of the interrupt: on virtual machines that is some
# tens of microseconds. What ours cost beyond it is Heddle's.
#
# Linux, on 64 bits.

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

# A timer whose signal interrupts the thread, and nothing else.
class BareTimer
  SIGNAL = Signal.list.fetch("ALRM")
  REAL = 0
  MICROSECONDS = 1_000_000

  def initialize
    @set = function("setitimer", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
    handle = function("signal", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
    # abs(3) takes an Integer, as a handler does, and may be called at any time.
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

# Two fibers that give each other their turns.
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

# What each contestant takes when the machine does little else: the tenth percentile, by name.
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
# Where the stack lies makes a difference, so each has its own reference.
[outside, inside].each { |contestants| report took.slice(*contestants.keys) }

puts "CPU time of #{Switching::SWITCHES} switches where nobody is preemptible:"
switching = %i[none yielding].to_h do |preempt|
  ["preempt: :#{preempt}", -> { Thread.new { Switching.new(preempt).work }.value }]
end
report undisturbed(switching)
# rubocop:enable Style/OneClassPerFile
