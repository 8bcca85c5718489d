# frozen_string_literal: true

module Heddle
  module PumaSupport
    # Limits how many requests are handled at a time; those that wait get their turn in the order in which they came.
    # All callers are fibers of one scheduler, so what must not be interrupted is not preempted, and needs no lock. A
    # {Semaphore}, which works across threads, takes a microsecond more for each request.
    #
    # @api private
    class Permits
      # @return [Integer] how many are free
      attr_reader :available

      # @param limit [Integer]
      def initialize(limit)
        @available = limit
        @waiters = []
      end

      # @return [Integer] how many fibers wait
      def waiting = @waiters.size

      # Takes a permit, and waits for it if need be.
      #
      # @yield if the fiber has to wait, before it does
      # @return [void]
      def acquire
        waiter = Heddle.without_preemption { take_or_enqueue }
        return unless waiter

        begin
          yield
          received = waiter.wait
        ensure
          give_back(waiter) unless received
        end
      end

      # Gives a permit to the fiber that has waited longest.
      #
      # @return [void]
      def release
        Heddle.without_preemption { pass_on }
      end

      private

      def take_or_enqueue
        if @available.positive?
          @available -= 1
          nil
        else
          Waiter.new.tap { |waiter| @waiters << waiter }
        end
      end

      # No permit is free while a fiber waits, so none is overtaken.
      def pass_on
        if (waiter = @waiters.shift)
          waiter.wake
        else
          @available += 1
        end
      end

      # The fiber is being ended. It may have been given the permit at this moment.
      def give_back(waiter)
        Heddle.without_preemption { @waiters.delete(waiter) || pass_on }
      end
    end
    private_constant :Permits
  end
end
