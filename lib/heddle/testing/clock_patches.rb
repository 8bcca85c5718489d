# frozen_string_literal: true

module Heddle
  module Testing
    # Methods of Ruby that tell the time, or whose limits Ruby itself compares with the real clock. While a run with a
    # virtual clock is under way in the process, methods stand in for them that ask whether the current fiber belongs to
    # that run.
    #
    # A test's own stub wins. So only Ruby's own methods are replaced, where they are defined, and a stub replaces the
    # replacement. A stub that outlives the run puts the replacement back, which does as Ruby's method then.
    module ClockPatches
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

      # `Process.clock_gettime`.
      CLOCK_GETTIME = lambda do |original|
        lambda do |clock, unit = :float_second|
          VirtualClock.current&.read(clock, unit) || original.bind_call(self, clock, unit)
        end
      end

      # `Time.now`.
      NOW = lambda do |original|
        lambda do |in: nil|
          clock = VirtualClock.current or next original.bind_call(self, in:)
          at(0, clock.nanoseconds(Process::CLOCK_REALTIME), :nanosecond, in:)
        end
      end

      # `Time.new` without a date.
      NEW = lambda do |original|
        lambda do |*date, **options, &block|
          # A class of the program's may initialize its objects by itself.
          virtual = date.empty? && VirtualClock.current && instance_method(:initialize).owner == Time
          virtual ? now(**options) : original.bind_call(self, *date, **options, &block)
        end
      end

      # `sleep`, whose value is a number of seconds.
      SLEEP = lambda do |original|
        lambda do |*limit|
          clock = VirtualClock.current or next original.bind_call(self, *limit)
          began = clock.nanoseconds(Process::CLOCK_MONOTONIC)
          original.bind_call(self, *limit)
          ((clock.nanoseconds(Process::CLOCK_MONOTONIC) - began) / 1e9).round
        end
      end

      # `Queue#pop(timeout:)`.
      POP = lambda do |original|
        lambda do |non_block = false, timeout: nil|
          next original.bind_call(self, non_block, timeout:) if non_block || !Limits.virtual?(timeout)

          empty? && timeout.zero? ? nil : Limits.within(timeout) { original.bind_call(self, false) }
        end
      end

      # `SizedQueue#push(timeout:)`.
      PUSH = lambda do |original|
        lambda do |item, non_block = false, timeout: nil|
          next original.bind_call(self, item, non_block, timeout:) if non_block || !Limits.virtual?(timeout)

          size >= max && timeout.zero? ? nil : Limits.within(timeout) { original.bind_call(self, item) }
        end
      end

      # `Thread#join(limit)`.
      JOIN = lambda do |original|
        lambda do |*limits|
          limit = limits.first if limits.one?
          next original.bind_call(self, *limits) unless Limits.virtual?(limit) && limit.positive?

          Limits.within(limit) { original.bind_call(self) }
        end
      end

      # A method of Ruby's, and what stands in for it.
      class Patch
        # @param owner [Module] whose own method it is, or, as of `Time.new`, inherits it
        # @param name [Symbol]
        # @param replacement [Proc] makes the method from Ruby's
        def initialize(owner, name, replacement)
          @owner = owner
          @name = name
          @replacement = replacement
        end

        # Replaces Ruby's method, under whichever name the class has it: a stub keeps it as an alias.
        def add
          @inherited = !own_names.include?(@name)
          names = own_names.select { |name| ruby?(name) }
          names << @name if @inherited
          @original ||= @owner.instance_method(names.first) unless names.empty?
          @added = names.map do |name|
            put(name, @replacement.call(@original))
            @owner.instance_method(name)
          end
        end

        # Puts Ruby's method back, where no stub is; also where a stub has put a method of an earlier run back.
        def remove
          own_names.each do |name|
            next unless stands_in?(@owner.instance_method(name))

            @inherited && name == @name ? @owner.__send__(:remove_method, name) : put(name, @original)
          end
        end

        private

        def own_names = @owner.instance_methods(false) + @owner.private_instance_methods(false)

        def ruby?(name)
          method = @owner.instance_method(name)
          path, = method.source_location
          method.original_name == @name && (path.nil? || path.start_with?("<internal:"))
        end

        def stands_in?(method)
          return true if @added.include?(method)

          method.original_name == @name && method.source_location&.first == __FILE__
        end

        def put(name, body)
          visibility = @owner.private_method_defined?(name) ? :private : :public
          # Ruby does not warn of the redefinition of an alias.
          @owner.__send__(:alias_method, name, name)
          @owner.define_method(name, body)
          @owner.__send__(visibility, name)
        end
      end

      ALL = [
        Patch.new(Process.singleton_class, :clock_gettime, CLOCK_GETTIME),
        Patch.new(Time.singleton_class, :now, NOW), Patch.new(Time.singleton_class, :new, NEW),
        Patch.new(Kernel, :sleep, SLEEP), Patch.new(Kernel.singleton_class, :sleep, SLEEP),
        *[Thread::Queue, Thread::SizedQueue].product(%i[pop deq shift]).map { |type, name| Patch.new(type, name, POP) },
        *%i[push enq <<].map { |name| Patch.new(Thread::SizedQueue, name, PUSH) },
        Patch.new(Thread, :join, JOIN)
      ].freeze
      private_constant :Limits, :CLOCK_GETTIME, :NOW, :NEW, :SLEEP, :POP, :PUSH, :JOIN, :Patch, :ALL

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
            ALL.each(&:add) if before.zero?
            ALL.each(&:remove) if @runs.zero?
          end
        end
      end
    end
    private_constant :ClockPatches
  end
end
