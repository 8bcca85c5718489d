# frozen_string_literal: true

module Heddle
  module Stalls
    # The thread that reports what a native thread has noticed. Both wait without the GVL, so a fiber that computes does
    # not keep them from noticing. Ruby gives this thread the GVL within 0.1 s, unless C code keeps it. Then the native
    # thread has looked where the fiber is ({Sighting}), and may have written a line already.
    #
    # @api private
    class Watcher
      # What the native thread has seen: `count` and `due` are nil if it has written no line.
      Sighting = Data.define(:fiber_name, :native_method, :native_function, :backtrace, :count, :due) do
        def in_c? = native_method && !backtrace.empty?

        def fiber = fiber_name && "fiber #{fiber_name}"
      end
      private_constant :Sighting

      # @param watch [StallWatch]
      # @param thread [Thread] the scheduler's
      # @param receivers [Receivers]
      def initialize(watch, thread, receivers)
        @watch = watch
        @thread = thread
        @receivers = receivers
      end

      # Runs until the scheduler is closed.
      def run
        while (event = @watch.wait)
          kind, slice, duration, *rest = event
          kind == :stalled ? begun(slice, duration, *rest) : ended(slice, duration, *rest)
        end
      end

      private

      def begun(slice, duration, seen)
        sighting = Sighting.new(*seen) if seen
        # Without a sighting, the end is the next event if the stall has ended meanwhile.
        return unless (found = find(slice, sighting))

        @slice = slice
        note(Stall.new(thread: @thread, duration:, ended: false, late_fibers: 0, latest_by: 0.0, count: 0, **found),
             sighting)
        @receivers.report(@stall, written: !sighting&.count.nil?) if @due
      end

      # Ruby's own backtrace tells more than a sighting, unless the fiber was seen in C code. It comes too late if the
      # stall has ended meanwhile.
      def find(slice, sighting)
        current = @watch.current?(slice)
        return look if current && !sighting&.in_c?

        { **sighting.to_h.except(:fiber_name, :count, :due), fiber: current ? fiber : sighting.fiber } if sighting
      end

      def look = { native_method: @watch.native_method(@thread), native_function: nil, backtrace:, fiber: }

      def backtrace = (@thread.backtrace || []).reject { |line| line.start_with?(LIB) }.freeze

      def fiber = @watch.fiber(@thread)&.then { |fiber| "#{fiber.inspect}#{Names.suffix(fiber)}" }

      def ended(slice, duration, late_fibers, latest_by)
        unless slice == @slice
          note(Stall.new(thread: @thread, fiber: nil, backtrace: [].freeze, native_method: nil, native_function: nil,
                         duration:, ended: true, late_fibers:, latest_by:, count: 0))
        end
        @receivers.report(@stall.with(duration:, ended: true, late_fibers:, latest_by:)) if @due
        @slice = @stall = nil
      end

      # The native thread has counted the stalls that it has reported.
      def note(stall, sighting = nil)
        count, @due = sighting&.count ? [sighting.count, sighting.due] : StallWatch.count(stall.location)
        @stall = stall.with(count:)
      end
    end
    private_constant :Watcher
  end
end
