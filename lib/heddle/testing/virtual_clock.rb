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

      # How many times `idle` the clock of a scheduler has learned to wait (see `ext/core/src/explore/outside_wait.rs`),
      # and how often it has jumped while an event from outside might still have come: at last by `length` seconds,
      # after it had waited for `waited` seconds of real time.
      Jumps = Data.define(:idle_factor, :count, :length, :waited) do
        # @param scheduler [Scheduler, nil]
        # @return [Jumps, nil] nil without a virtual clock
        def self.of(scheduler)
          learned = scheduler && Native.jumps_over(scheduler)
          new(*learned) if learned
        end

        # @return [Boolean] whether there was one
        def any? = count.positive?

        # @return [String, nil] nil if there was none
        def to_note
          return unless any?

          times = count == 1 ? "once" : "#{count} times, at last"
          "The virtual clock has jumped #{times} by #{length.round(3)} s while a fiber waited for I/O or a thread: " \
            "no event had come for #{waited.round(3)} s of real time. If one takes longer, raise idle:"
        end

        # The error's detailed message, which Ruby prints, tells the jumps, too.
        def name_in(error)
          return if !any? || error.frozen?

          error.extend(JumpedOver)
          error.instance_variable_set(:@heddle_jumps, to_note)
        end
      end

      class << self
        # @return [VirtualClock, nil] the clock of the current fiber, unless it is in {Testing.real_time}
        def current
          clock = Thread.current.thread_variable_get(VARIABLE)
          clock if clock && !clock.real? && Fiber.scheduler.equal?(clock.scheduler)
        end

        # @see Testing.run
        def run(idle, **options, &block)
          scheduler = nil
          ClockPatches.during { Heddle.run(**options) { use(scheduler = Fiber.scheduler, idle, &block) } }
        rescue SystemExit, SignalException, NoMemoryError
          raise
        rescue Exception => e # rubocop:disable Lint/RescueException -- an assertion of a test framework is no StandardError
          Jumps.of(scheduler)&.name_in(e)
          raise
        ensure
          forget
        end

        # Stops the clock of the scheduler while the block runs.
        #
        # @param waits [Hash] see {#initialize}
        def use(scheduler, idle, **waits)
          Story.call_fiber(Fiber.current, Story::PROGRAM)
          Thread.current.thread_variable_set(VARIABLE, new(scheduler, idle, **waits))
          yield
        end

        # The run has ended.
        def forget = Thread.current.thread_variable_set(VARIABLE, nil)
      end

      # @return [Scheduler]
      attr_reader :scheduler

      # @param scheduler [Scheduler]
      # @param idle [Float, Integer, Rational] seconds
      # @param idle_factor [Integer, nil] how many times `idle` an earlier clock has learned to wait
      # @param patient [Boolean] whether it always waits the longest time
      def initialize(scheduler, idle, idle_factor: nil, patient: false)
        @scheduler = scheduler
        @real = {}.compare_by_identity
        @began = { Process::CLOCK_MONOTONIC => Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond),
                   Process::CLOCK_REALTIME => Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) }
        Native.stop_clock(scheduler, (idle * 1_000_000_000).to_i, idle_factor, patient)
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
