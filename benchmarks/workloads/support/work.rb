# frozen_string_literal: true

require_relative "../../run/clock"
require_relative "../support/repeating"

# The work of CPU-bound fibers, in units of about a millisecond. `fib` is nothing but method calls: the worst case for a
# scheduler that counts calls, and an average one for a scheduler that checks at returns.
#
# The number of units that take SECONDS is measured once per session (workloads/latency/calibrate.rb). So every
# contestant does the same work, however fast the machine is at that moment.
module Work
  DEPTH = 19
  RIGHT = 6765

  # CPU time of all fibers together, however many there are.
  SECONDS = 2.6 * Repeating::SCALE

  module_function

  def fib(number) = number <= 1 ? 1 : fib(number - 1) + fib(number - 2)

  def unit
    raise "fib(#{DEPTH}) is wrong" unless fib(DEPTH) == RIGHT
  end
end
