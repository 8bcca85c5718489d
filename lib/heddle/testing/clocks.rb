# frozen_string_literal: true

require "monitor"

module Heddle
  module Testing
    # What orders the fibers of one run: each fiber has a vector clock, and so has what orders fibers. A release joins
    # the fiber's clock to that, and an acquisition that one to the fiber's.
    #
    # Where it is not known which fibers a call orders, it orders all that make such calls.
    class Clocks
      # The classes of locks.
      LOCKS = [Thread::Mutex, Monitor].freeze
      # What orders those fibers that call the same object.
      OBJECTS = [Thread::Queue, Thread::SizedQueue, Thread::ConditionVariable, Semaphore].freeze
      # Methods that wait for the ends of fibers, or let no other one run meanwhile.
      AWAITING = %i[await await_all map race without_preemption].freeze
      # Methods that give control to another fiber.
      RESUMING = %i[resume transfer raise kill alive?].freeze
      # What waits for no other fiber.
      UNORDERED = %i[kernel_sleep timeout_after].freeze
      # What a fiber calls that waits for a lock, and the one that unlocks it.
      OF_LOCKS = %i[block unblock].freeze
      # Gems whose objects order the fibers that call them, by means that are not seen.
      GEMS = /\A(?:Concurrent|Async)::/
      # The events at which a call begins.
      BEGINNINGS = %i[c_call call].freeze
      # The events at which a call ends.
      ENDINGS = %i[c_return return].freeze
      # All that orders fibers, and of which it is not known whom.
      ANY = Object.new.freeze
      NAME = Module.instance_method(:name)
      OWNED = { Thread::Mutex => Thread::Mutex.instance_method(:owned?),
                Monitor => Monitor.instance_method(:mon_owned?) }.freeze
      ALIVE = Fiber.instance_method(:alive?)
      SAME = BasicObject.instance_method(:equal?)
      private_constant :ALIVE, :SAME, :OBJECTS, :AWAITING, :RESUMING, :UNORDERED, :OF_LOCKS, :GEMS, :ANY, :NAME, :OWNED

      # @param one [Object] whose methods the program may have overridden
      # @param other [Object]
      # @return [Boolean] whether both are the same object
      def self.same?(one, other) = SAME.bind_call(one, other)

      # @param lock [Thread::Mutex, Monitor] whose methods the program may have overridden
      # @return [Boolean] whether the current fiber has it
      def self.owned?(lock) = OWNED[type(lock)].bind_call(lock)

      # @return [Class] the one of Ruby's
      def self.type(lock)
        LOCKS.find { |each| each === lock } # rubocop:disable Style/CaseEquality -- it calls no method of the lock
      end

      # @return [Boolean] whether the class is of a gem whose objects order fibers
      def self.of_gem?(type) = NAME.bind_call(type)&.match?(GEMS) || false

      # @param by_locks [Boolean] whether locks order fibers
      def initialize(by_locks:)
        @by_locks = by_locks
        @clocks = {}.compare_by_identity
        # Those whose begin is not seen, as of an Enumerator's. It is not seen either which fiber resumes them.
        @foreign = {}.compare_by_identity
        @living = []
        @kinds = Hash.new { |kinds, type| kinds[type] = kind(type) }.compare_by_identity.update(known_kinds)
      end

      # The fiber is at an event, and the other methods are called of it.
      def enter(fiber)
        return if fiber.equal?(@last)

        meet(fiber) unless @clocks.key?(fiber)
        if @foreign.key?(fiber) || @foreign.key?(@last)
          join(fiber, @clocks[@last])
          grow_older(@last)
        end
        @last = fiber
      end

      # @param point [TracePoint]
      # @return [Boolean] whether the event is one of a method that orders fibers
      def orders?(point)
        type = point.defined_class or return false
        case @kinds[type]
        when :none then false
        when :scheduler then !unordered?(point.method_id)
        when :heddle then @by_locks || AWAITING.include?(point.method_id)
        else true
        end
      end

      # @param point [TracePoint] of such a method
      def pass(fiber, point)
        kind = @kinds[point.defined_class]
        case point.event
        when *BEGINNINGS then begin_call(fiber, kind, point)
        when *ENDINGS then end_call(fiber, kind, point)
        end
      end

      # All that follows such calls of other fibers comes after what the fiber has done.
      def release_all(fiber) = release(fiber, ANY)

      # @return [Integer] the fiber's own time
      def age(fiber) = @clocks[fiber][fiber]

      # @return [Hash] what the fiber comes after: the times of fibers
      def seen(fiber) = @clocks[fiber]

      # @param place [Object] what orders fibers
      def release(fiber, place)
        @clocks[place] ||= {}.compare_by_identity
        join(place, @clocks[fiber])
        grow_older(fiber)
      end

      # @param place [Object] what orders fibers
      def acquire(fiber, place) = join(fiber, @clocks[place])

      private

      # The first one is the program's.
      def meet(fiber)
        @foreign[fiber] = true if @last
        add(fiber, {}.compare_by_identity)
      end

      def add(fiber, clock)
        clock[fiber] = 1
        @living << fiber
        @clocks[fiber] = clock
      end

      # Calls of the extension order all fibers, as starting a fiber is one: then no two would lock at the same time.
      def known_kinds
        by_locks = ->(kind) { @by_locks ? kind : :none }
        { Fiber => :fiber, Scheduler => :scheduler, **OBJECTS.to_h { |type| [type, :object] },
          **LOCKS.to_h { |type| [type, by_locks.call(:object)] }, Native.singleton_class => by_locks.call(:any),
          Heddle.singleton_class => :heddle, Barrier => :heddle }
      end

      # The program may have overridden the methods of its classes.
      def kind(type)
        return :object if Clocks.of_gem?(type)

        [IO, Thread].any? { |each| each >= type } ? :any : :none
      end

      def unordered?(method) = UNORDERED.include?(method) || (!@by_locks && OF_LOCKS.include?(method))

      def begin_call(fiber, kind, point)
        kind == :fiber ? pass_fiber(fiber, point.self, point.method_id) : order(fiber, kind, point.self)
      end

      def end_call(fiber, kind, point)
        return order(fiber, kind, point.self) unless kind == :fiber

        join(fiber, @clocks[point.self]) if RESUMING.include?(point.method_id)
      end

      # At the begin and the end of a call, as some have a block that is alone.
      def order(fiber, kind, object)
        place = kind == :object ? object : ANY
        release_ended if ANY.equal?(place)
        acquire(fiber, place)
        release(fiber, place)
      end

      # They may be awaited.
      def release_ended
        @living.reject! do |fiber|
          release(fiber, ANY) unless ALIVE.bind_call(fiber)
        end
      end

      def pass_fiber(fiber, other, method)
        if method == :initialize
          add(other, @clocks[fiber].dup)
        elsif RESUMING.include?(method) && @clocks.key?(other)
          join(other, @clocks[fiber])
        end
        grow_older(fiber)
      end

      def join(place, clock)
        @clocks[place].merge!(clock) { |_, one, two| [one, two].max } if clock
      end

      def grow_older(fiber) = @clocks[fiber][fiber] += 1
    end
    private_constant :Clocks
  end
end
