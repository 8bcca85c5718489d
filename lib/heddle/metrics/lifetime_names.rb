# frozen_string_literal: true

require_relative "growth"

module Heddle
  module Metrics
    # A source whose names stay, for a monitoring system that keeps each name for ever. A scheduler tells 100 names
    # apart at a time, and replaces those that no fiber had for minutes: clients that choose paths would make new ones
    # without end. Here the first 100 names stay, and all others are one.
    #
    # @api private
    class LifetimeNames
      # @param source [Source]
      def initialize(source)
        @source = source
        @growth = Growth.new
        @mutex = Thread::Mutex.new
        @sums = {}
      end

      # @return [Hash, nil] see {Source#stats}
      def stats = @source.stats

      # Any thread may call this.
      #
      # @return [Array<Source::Total>] those of the names, and of `other`. None of their numbers ever falls, but in a
      #   forked child, which counts from zero
      def names
        sums = @mutex.synchronize do
          @sums = {} unless @generation == Native.generation
          @generation = Native.generation
          totals = @source.names.map { |total| parts(total) }.reduce({}, :update)
          @growth.take(totals).each { |key, value| @sums[key] = @sums.fetch(key, 0) + value }
          @sums.dup
        end
        sums.group_by { |key, _| key.name }.map { |name, values| total(name, values) }
      end

      private

      def parts(total)
        name = total.name
        parts = %i[count sum ran runnable].to_h { |part| [key(part, name), total.public_send(part)] }
        total.waited.each { |kind, seconds| parts[key(:waited, name, kind)] = seconds }
        total.buckets.each { |bound, count| parts[key(:buckets, name, bound)] = count }
        parts
      end

      def total(name, values)
        found = { waited: {}, buckets: {} }
        values.each do |key, value|
          key.detail ? found[key.instrument][key.detail] = value : found[key.instrument] = value
        end
        Source::Total.new(name:, max: nil, count: 0, sum: 0.0, ran: 0.0, runnable: 0.0, **found)
      end

      def key(part, name, detail = nil) = Growth::Key.new(instrument: part, name:, detail:)
    end
    private_constant :LifetimeNames
  end
end
