# frozen_string_literal: true

module Heddle
  module Stalls
    # The thread that notices stalls and reports them. It waits without the GVL, so a fiber that computes does not keep
    # it from noticing. Ruby gives it the GVL within 0.1 s, unless C code keeps that. By then, {StallWatch#seen} knows
    # where the fiber was at its next safe point, or else the fiber's thread has released the GVL.
    #
    # @api private
    class Watcher
      # @param watch [StallWatch]
      # @param thread [Thread] the scheduler's
      # @param causes [Causes]
      # @param receivers [Receivers]
      def initialize(watch, thread, causes, receivers)
        @watch = watch
        @thread = thread
        @causes = causes
        @receivers = receivers
      end

      # Runs until the scheduler is closed.
      def run
        while (ends, stalled = @watch.wait)
          ends.each { |stall| ended(*stall) }
          begun(*stalled) if stalled
        end
      end

      private

      def begun(slice, duration)
        found = find(slice)
        # Otherwise, the stall has ended, and no code of Ruby's has run in it since it was noticed.
        return unless found

        @slice = slice
        @stall = report(Stall.new(**found, thread: @thread, duration:, ended: false, late_fibers: 0, latest_by: 0.0,
                                           count: 0))
      end

      # The end of a stall is reported if its beginning was. One that was not seen is reported now.
      def ended(slice, duration, late_fibers, latest_by)
        outcome = { duration:, ended: true, late_fibers:, latest_by: }
        if slice == @slice
          @receivers.report(@stall.with(**outcome)) if @stall
          @slice = @stall = nil
        else
          report(Stall.new(thread: @thread, fiber: nil, backtrace: [].freeze, native_method: nil, count: 0, **outcome))
        end
      end

      # Returns nil if this place was reported a short while ago.
      def report(stall)
        count, is_due = @causes.count(stall.location)
        stall.with(count:).tap { |counted| @receivers.report(counted) } if is_due
      end

      # A look at a thread that runs on is worth nothing if the slice has ended meanwhile.
      def find(slice)
        backtrace, native_method, fiber, name = @watch.seen(slice)
        return describe(backtrace, native_method, fiber, name) if backtrace

        fiber = @watch.fiber(@thread)
        found = describe(@thread.backtrace || [], @watch.native_method(@thread), fiber, fiber && Names.of(fiber))
        found if @watch.current?(slice)
      end

      def describe(backtrace, native_method, fiber, name)
        { backtrace: backtrace.reject { |line| line.start_with?(LIB) }.freeze, native_method:,
          fiber: ("#{fiber.inspect}#{Names.quoted(name)}" if fiber) }
      end
    end
    private_constant :Watcher
  end
end
