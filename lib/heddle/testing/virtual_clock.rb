# frozen_string_literal: true

require_relative "clock_patches"

module Heddle
  module Testing
    # The clock of a run with `clock: :virtual`. Its fibers see it instead of the real one.
    class VirtualClock
      VARIABLE = :heddle_testing_clock
      # How many nanoseconds a unit of `Process.clock_gettime` has.
      UNITS = { nanosecond: 1, microsecond: 1_000, millisecond: 1_000_000, second: 1_000_000_000 }.freeze
      FLOATS = { float_second: 1e9, float_millisecond: 1e6, float_microsecond: 1e3 }.freeze
      private_constant :VARIABLE, :UNITS, :FLOATS

      class << self
        # @return [VirtualClock, nil] the clock of the current fiber, unless it is in {Testing.real_time}
        def current
          clock = Thread.current.thread_variable_get(VARIABLE)
          clock if clock && !clock.real? && Fiber.scheduler.equal?(clock.scheduler)
        end

        # @see Testing.run
        def run(idle, **options, &block)
          ClockPatches.during { Heddle.run(**options) { use(Fiber.scheduler, idle, &block) } }
        ensure
          forget
        end

        # Stops the clock of the scheduler while the block runs.
        def use(scheduler, idle)
          Story.call_fiber(Fiber.current, Story::PROGRAM)
          Thread.current.thread_variable_set(VARIABLE, new(scheduler, idle))
          yield
        end

        # The run has ended.
        def forget = Thread.current.thread_variable_set(VARIABLE, nil)
      end

      # @return [Scheduler]
      attr_reader :scheduler

      def initialize(scheduler, idle)
        @scheduler = scheduler
        @real = {}.compare_by_identity
        @began = { Process::CLOCK_MONOTONIC => Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond),
                   Process::CLOCK_REALTIME => Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) }
        Native.stop_clock(scheduler, (idle * 1_000_000_000).to_i)
      end

      # @return [Boolean] whether the current fiber sees the real clock
      def real? = @real.key?(Fiber.current)

      # The current fiber sees the real clock in the block.
      def real
        outer = @real.key?(Fiber.current)
        @real[Fiber.current] = true
        yield
      ensure
        @real.delete(Fiber.current) unless outer
      end

      # @return [Integer, nil] nanoseconds; nil for a clock that is not virtual
      def nanoseconds(clock)
        began = @began[clock]
        began + Native.virtual_time(@scheduler) if began
      end

      # @param unit [Symbol, nil] of `Process.clock_gettime`
      # @return [Numeric, nil]
      def read(clock, unit)
        unit ||= :float_second
        time = nanoseconds(clock) or return
        return time / UNITS[unit] if UNITS.key?(unit)

        time / FLOATS[unit] if FLOATS.key?(unit)
      end
    end
    private_constant :VirtualClock
  end
end
