# frozen_string_literal: true

require_relative "../support/clock"
require_relative "../support/repeating"

# The work of the fibers that compute, in units of a millisecond or so: `fib`, which is nothing but calls of methods,
# the worst case of those who count calls, and a fair one for those who are asked at returns.
#
# How many units make up the time that all hogs together are to compute is found out once per session (calibrate.rb), so
# that every contestant does the very same work, and no one gets more of it because the machine was quick just then.
module Work
  DEPTH = 19
  RIGHT = 6765

  # All hogs together, however many they are.
  SECONDS = 2.6 * Repeating::SCALE

  module_function

  def fib(number) = number <= 1 ? 1 : fib(number - 1) + fib(number - 2)

  def unit
    raise "fib(#{DEPTH}) is wrong" unless fib(DEPTH) == RIGHT
  end
end
