# frozen_string_literal: true

require "fiddle"

# A POSIX timer that sends a signal to this process once, some time after it was armed. It calls `timer_create` and
# `timer_settime` of the C library by Fiddle, since nothing is compiled for the benchmarks. A call takes less than a
# microsecond, which is negligible beside the milliseconds that the timer is armed for.
#
# The structures are those of 64-bit Linux.
class PosixTimer
  LIBRARY = Fiddle.dlopen(nil)
  CREATE = Fiddle::Function.new(LIBRARY["timer_create"],
                                [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
  SET = Fiddle::Function.new(LIBRARY["timer_settime"],
                             [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP],
                             Fiddle::TYPE_INT)

  NOTIFY_BY_SIGNAL = 0
  SIGEVENT_SIZE = 64
  RELATIVE = 0
  NANOSECONDS = 1_000_000_000

  def initialize(signal, seconds)
    event = [0, Signal.list.fetch(signal), NOTIFY_BY_SIGNAL].pack("Qll").ljust(SIGEVENT_SIZE, "\0")
    id = [0].pack("Q")
    check CREATE.call(Process::CLOCK_MONOTONIC, event, id)
    @id = id.unpack1("Q")
    # No interval, then the time until it expires, each in seconds and nanoseconds.
    @once = [0, 0, *(seconds * NANOSECONDS).round.divmod(NANOSECONDS)].pack("q4")
  end

  # Arming the timer again postpones the signal.
  def arm = check(SET.call(@id, RELATIVE, @once, nil))

  private

  def check(result)
    raise SystemCallError.new("timer", Fiddle.last_error) unless result.zero?
  end
end
