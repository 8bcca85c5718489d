# frozen_string_literal: true

require_relative "clocks"

module Heddle
  module Testing
    # Finds locks that fibers of one run have taken in different orders, although the run has not come to a deadlock.
    #
    # A free lock is taken without the scheduler, so a trace of Ruby's own methods tells what is locked. An order counts
    # from the call that locks, whether or not the fiber has to wait there.
    class LockOrders
      # Methods of both, which wait for the lock.
      WAITING = %i[lock synchronize enter].freeze
      # Methods of both, which may take it and do not wait.
      TRYING = %i[try_lock try_enter].freeze
      # Mutex is written in C in some versions of Ruby, and in Ruby in others.
      EVENTS = [*Clocks::BEGINNINGS, *Clocks::ENDINGS].freeze
      Held = Data.define(:lock, :place)
      # A fiber that has the lock `outer` locks `inner`. `gates` are the other locks that it has. `time` is the number
      # of the order, `age` the fiber's own time, and `seen` are the times of the fibers that it comes after.
      Order = Data.define(:fiber, :outer, :inner, :gates, :time, :age, :seen)
      private_constant :WAITING, :TRYING, :EVENTS, :Held, :Order

      # While the block runs, locks of this thread are noticed.
      def self.noticing(&)
        locks = TracePoint.new(*EVENTS) { |point| Run.of_thread&.detector(self)&.pass(point) }
        # With a block it is enabled for this thread only.
        locks.enable { yield } # rubocop:disable Style/ExplicitBlockArgument
      end

      # @return [LockOrder, nil] the first that was found
      attr_reader :error

      # @param files [ProgramFiles]
      def initialize(files)
        @files = files
        @time = 0
        @held = Hash.new { |held, fiber| held[fiber] = [] }.compare_by_identity
        # Locks order fibers only in this schedule, not in another one.
        @clocks = Clocks.new(by_locks: false)
        @orders = Hash.new { |orders, lock| orders[lock] = {} }.compare_by_identity
      end

      # A method begins or ends.
      #
      # @param point [TracePoint]
      def pass(point)
        fiber = Fiber.current
        @clocks.enter(fiber)
        if Clocks::LOCKS.include?(point.defined_class)
          begins = Clocks::BEGINNINGS.include?(point.event)
          begins ? begin_call(point.self, point.method_id) : end_call(point.self, point.method_id)
        elsif @clocks.orders?(point)
          @clocks.pass(fiber, point)
        end
      end

      private

      def begin_call(lock, method)
        wait(lock) if WAITING.include?(method) && !Clocks.owned?(lock)
      end

      def end_call(lock, method)
        return unless TRYING.include?(method) && Clocks.owned?(lock)

        held = held_by_fiber
        hold(held, lock) if held.none? { |entry| Clocks.same?(entry.lock, lock) }
      end

      # What the fiber has unlocked meanwhile is left out.
      def held_by_fiber = @held[Fiber.current].keep_if { |entry| Clocks.owned?(entry.lock) }

      def wait(lock)
        held = held_by_fiber
        inner = hold(held, lock) or return
        outer = held[..-2]
        outer.each { |entry| add(order(entry, inner, outer.reject { |other| other.equal?(entry) })) }
      end

      def order(outer, inner, gates)
        fiber = Fiber.current
        Order.new(fiber, outer, inner, gates, @time += 1, @clocks.age(fiber), @clocks.seen(fiber).dup)
      end

      # Locks that no line of the program takes, not even by a call of a gem, are none of its own.
      def hold(held, lock)
        place = caller_locations.find { |location| @files.include?(location.path) } or return
        Held.new(lock, place).tap { |entry| held << entry }
      end

      def add(order)
        key = [order.fiber, order.inner.lock, *order.gates.map(&:lock)].map(&:__id__)
        @orders[order.outer.lock][key] = order
        return if @error || !leads?(order.inner.lock, order.outer.lock)

        circle = circle([order])
        @error = LockOrder.new(message(circle.sort_by(&:time))) if circle
      end

      # @return [Boolean] whether any fibers have taken locks in an order from one of these to the other
      def leads?(from, to)
        seen = { from => true }.compare_by_identity
        waiting = [from]
        while (lock = waiting.pop)
          return true if Clocks.same?(lock, to)

          following(lock).each do |order|
            inner = order.inner.lock
            waiting << inner unless seen.key?(inner)
            seen[inner] = true
          end
        end
        false
      end

      def following(lock) = @orders.key?(lock) ? @orders[lock].each_value : []

      # @param orders [Array<Order>] of which each begins with the lock that the one before it ends with
      # @return [Array<Order>, nil] the same and more, of which the last one ends with the first lock
      def circle(orders)
        following(orders.last.inner.lock).each do |order|
          next unless orders.all? { |other| at_once?(other, order) }

          longer = [*orders, order]
          found = Clocks.same?(order.inner.lock, orders.first.outer.lock) ? longer : circle(longer)
          return found if found
        end
        nil
      end

      # @return [Boolean] whether two fibers may lock at the same time
      def at_once?(one, other)
        return false if one.fiber.equal?(other.fiber) || locks(one).intersect?(locks(other))

        !before?(one, other) && !before?(other, one)
      end

      def before?(one, other) = other.seen.fetch(one.fiber, 0) >= one.age

      def locks(order) = order.gates.map { |entry| entry.lock.__id__ }

      def message(circle)
        names = circle.map { |order| order.outer.lock }.each_with_index.to_h { |lock, index| [lock.__id__, index + 1] }
        lines = circle.map do |order|
          outer, inner = [order.outer, order.inner].map { |entry| text(entry, names[entry.lock.__id__]) }
          "  #{Story.label(order.fiber)} locks #{outer}, then #{inner}"
        end
        "Fibers lock in different orders, and may wait for each other for ever.\n#{lines.join("\n")}"
      end

      def text(entry, number)
        type = Clocks.type(entry.lock).name.delete_prefix("Thread::")
        "#{type} #{number} at #{@files.place(entry.place.path, entry.place.lineno)}"
      end
    end
    private_constant :LockOrders
  end
end
