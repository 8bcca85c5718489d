# frozen_string_literal: true

module Heddle
  class Web
    # The numbers of all schedulers.
    #
    # @api private
    class StatsReport
      # Seconds for which the lag is measured after a request: longer than the page waits until its next one.
      WATCHED = 5
      # Seconds: the page asks that often.
      INTERVAL = 1
      private_constant :WATCHED, :INTERVAL

      # It has no parameters.
      def initialize(*); end

      # @param thread [Thread, nil]
      # @return [String]
      def self.label(thread) = Text.clean(thread&.name || thread&.inspect || "no thread yet")

      # @return [Array] what the report depends on
      def key = []

      # @return [Hash]
      def to_h
        LagProbe.run_for(WATCHED)
        # That of this thread comes first.
        own, others = Native.open_schedulers.partition { |each| each.equal?(Fiber.scheduler) }
        schedulers = (own + others).map { |scheduler| describe(scheduler) }
        { pid: Process.pid, ruby: RUBY_VERSION, heddle: VERSION, at: Time.now.to_f, schedulers: }
      end

      private

      # @return [Hash] `lag` is nil for a scheduler of another thread. The histogram `scheduled_duration` of its
      #   `stats` says more.
      def describe(scheduler)
        { id: scheduler.object_id, thread: self.class.label(Native.owner(scheduler)), backend: scheduler.backend,
          lag: LagProbe.of(scheduler)&.max_of_last(INTERVAL), stats: plain(scheduler.stats) }
      end

      # JSON knows no histograms.
      def plain(numbers)
        numbers.transform_values do |value|
          case value
          when Hash then plain(value)
          when Metrics::Histogram then value.to_h
          else value
          end
        end
      end
    end
    private_constant :StatsReport
  end
end
