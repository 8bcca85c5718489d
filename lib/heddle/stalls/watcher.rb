# frozen_string_literal: true

module Heddle
  module Stalls
    # The thread that watches a scheduler's thread. It waits without the GVL, so a fiber that computes does not keep it
    # from noticing. To look at the fiber it needs the GVL, which Ruby gives it within 0.1 s, unless C code keeps it.
    #
    # @api private
    class Watcher
      LIB = File.expand_path("../..", __dir__)
      private_constant :LIB

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
        while (event = @watch.wait)
          kind, slice, duration, late_fibers, latest_by = event
          kind == :stalled ? begun(slice, duration) : ended(slice, duration, late_fibers, latest_by)
        end
      end

      private

      def begun(slice, duration)
        # If it has ended meanwhile, its end is the next event.
        return unless @watch.current?(slice)

        native_method = @watch.native_method(@thread)
        backtrace = (@thread.backtrace || []).reject { |line| line.start_with?(LIB) }.freeze
        fiber = @watch.fiber(@thread)&.inspect
        @slice = slice
        note(Stall.new(thread: @thread, fiber:, backtrace:, native_method:, duration:, ended: false,
                       late_fibers: 0, latest_by: 0.0, count: 0))
        @receivers.report(@stall) if @due
      end

      def ended(slice, duration, late_fibers, latest_by)
        unless slice == @slice
          note(Stall.new(thread: @thread, fiber: nil, backtrace: [].freeze, native_method: nil, duration:, ended: true,
                         late_fibers:, latest_by:, count: 0))
        end
        @receivers.report(@stall.with(duration:, ended: true, late_fibers:, latest_by:)) if @due
        @slice = @stall = nil
      end

      def note(stall)
        count, @due = @causes.count(stall.location)
        @stall = stall.with(count:)
      end
    end
    private_constant :Watcher
  end
end
