# frozen_string_literal: true

module Heddle
  module Testing
    # Methods of Ruby that tell the time, or whose limits Ruby itself compares with the real clock. They are patched
    # only while a run with a virtual clock is under way in the process, and ask whether it is the current fiber's.
    module ClockPatches
      # `Process.clock_gettime`.
      module ProcessClock
        # Like Ruby's Process.clock_gettime, by the virtual clock.
        def clock_gettime(clock, unit = :float_second)
          VirtualClock.current&.read(clock, unit) || super
        end
      end

      # `Time.now`, and `Time.new` without a date.
      module TimeNow
        # Like Ruby's Time.now, by the virtual clock.
        def now(in: nil)
          clock = VirtualClock.current or return super
          at(0, clock.nanoseconds(Process::CLOCK_REALTIME), :nanosecond, in:)
        end

        # Like Ruby's Time.new, by the virtual clock.
        def new(*date, **)
          return super unless date.empty? && VirtualClock.current
          # A class of the program's may initialize its objects by itself.
          return super unless instance_method(:initialize).owner == Time

          now(**)
        end
      end

      # `sleep`, whose value is a number of seconds.
      module Sleep
        # Like Ruby's Kernel#sleep, by the virtual clock.
        def sleep(*)
          clock = VirtualClock.current or return super
          began = clock.nanoseconds(Process::CLOCK_MONOTONIC)
          super
          ((clock.nanoseconds(Process::CLOCK_MONOTONIC) - began) / 1e9).round
        end
      end

      # Waits whose limits Ruby itself compares with the real clock.
      module Limits
        # @param limit [Object, nil] Ruby raises its own error for one that is no number
        # @return [Boolean] whether the virtual clock ends the wait
        def self.virtual?(limit) = limit.is_a?(Numeric) && !VirtualClock.current.nil?

        # @param seconds [Numeric]
        # @return [Object, nil] the block's value; nil when the time has passed
        def self.within(seconds, &)
          Heddle.move_on_after([seconds, 0].max, &)
        end
      end

      # `Queue#pop(timeout:)`.
      module QueueLimits
        # Like Ruby's Thread::Queue#pop, by the virtual clock.
        def pop(non_block = false, timeout: nil) # rubocop:disable Style/OptionalBooleanParameter -- Ruby's own
          return super if non_block || !Limits.virtual?(timeout)

          empty? && timeout.zero? ? nil : Limits.within(timeout) { super(false) }
        end
        alias deq pop
        alias shift pop
      end

      # `SizedQueue#push(timeout:)`.
      module SizedQueueLimits
        # Like Ruby's Thread::SizedQueue#push, by the virtual clock.
        def push(item, non_block = false, timeout: nil) # rubocop:disable Style/OptionalBooleanParameter -- Ruby's own
          return super if non_block || !Limits.virtual?(timeout)

          size >= max && timeout.zero? ? nil : Limits.within(timeout) { super(item) }
        end
        alias enq push
        alias << push
      end

      # `Thread#join(limit)`.
      module ThreadLimits
        # Like Ruby's Thread#join, by the virtual clock.
        def join(limit = nil)
          return super unless Limits.virtual?(limit)

          limit.positive? ? Limits.within(limit) { super() } : super
        end
      end

      Process.singleton_class.prepend(ProcessClock)
      Time.singleton_class.prepend(TimeNow)

      # The same for `Kernel.sleep`.
      PublicSleep = Sleep.dup

      # What is patched, with what, and how visible the methods are.
      ALL = [
        [Process.singleton_class, ProcessClock, :public], [Time.singleton_class, TimeNow, :public],
        [Kernel, Sleep, :private], [Kernel.singleton_class, PublicSleep, :public],
        [Thread::Queue, QueueLimits, :public], [Thread::SizedQueue, QueueLimits, :public],
        [Thread::SizedQueue, SizedQueueLimits, :public], [Thread, ThreadLimits, :public]
      ].freeze
      # The methods of each module, which has them only while a run is under way.
      METHODS = ALL.map { |entry| entry[1] }.uniq.to_h do |patch|
        [patch, patch.instance_methods(false).map { |name| patch.instance_method(name) }]
      end
      private_constant :ALL, :METHODS, :PublicSleep

      METHODS.each { |patch, methods| methods.each { |method| patch.__send__(:remove_method, method.name) } }
      ALL.each { |type, patch,| type.prepend(patch) }

      @lock = Mutex.new
      @runs = 0

      class << self
        # The patches are in force while the block runs, in whichever thread.
        def during
          count(1)
          yield
        ensure
          count(-1)
        end

        private

        def count(change)
          @lock.synchronize do
            before = @runs
            @runs += change
            add if before.zero?
            remove if @runs.zero?
          end
        end

        def add
          ALL.each do |_, patch, visibility|
            METHODS[patch].each do |method|
              patch.define_method(method.name, method)
              patch.__send__(visibility, method.name)
            end
          end
        end

        def remove
          METHODS.each { |patch, methods| methods.each { |method| patch.__send__(:remove_method, method.name) } }
        end
      end
    end
    private_constant :ClockPatches
  end
end
