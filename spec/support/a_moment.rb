# frozen_string_literal: true

# How long to sleep where only the wait itself counts: a different time whenever it is asked for, so that no example
# can come to depend on it. Programs in a Ruby of their own have it, too: it needs nothing but Ruby.
module AMoment
  PATH = __FILE__
  # Nanoseconds that it is shorter than. On disturbed threads it may be longer than most things take.
  LONGEST = ENV.key?("HEDDLE_DISTURBED") ? 30_000_000 : 2_000_000

  # A factor that makes far numbers of close ones: Knuth's for hashing.
  SPREAD = 2_654_435_761

  # The time is made from the clock, as `Random` has a state that Ractors don't share.
  #
  # @return [Float] seconds, at least a microsecond
  def a_moment
    spread = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) * SPREAD
    (1_000 + ((spread >> 16) % LONGEST)) / 1e9
  end
end

Kernel.include(AMoment)
