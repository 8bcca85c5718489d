# frozen_string_literal: true

module Heddle
  module Metrics
    # By how much totals have grown, for a monitoring system that adds up what it is given. That
    # system keeps each name for ever, so it gets the first 100 names alone; all others are `other`.
    #
    # @api private
    class Growth
      NAMES = 100
      OTHER = "other"
      # What floating point numbers may have lost.
      ROUNDING = 1e-6
      private_constant :NAMES, :OTHER, :ROUNDING

      def initialize
        @mutex = Thread::Mutex.new
        @before = {}
        @names_before = {}
        @names = Set[OTHER]
      end

      # Any thread may call this.
      #
      # @param totals [Hash{Metric => Numeric}]
      # @param names [Array<NameTotal>]
      # @return [Array(Hash{Metric => Numeric}, Array<NameTotal>)] what was added to both since the last call, without
      #   what has not changed. There may be several for `other`
      def take(totals, names)
        names = names.to_h { |total| [total.name, total] }
        @mutex.synchronize do
          # A forked child counts from zero.
          @before = @names_before = {} unless @generation == Native.generation
          @generation = Native.generation
          added = totals.to_h { |key, value| [key, grown(value, @before[key])] }.compact
          added_by_name = NameTotal.between(@names_before, names).reject(&:empty?).map { |total| bounded(total) }
          @before = totals
          @names_before = names
          [added, added_by_name]
        end
      end

      private

      def bounded(total)
        known = @names.include?(total.name) || (@names.size <= NAMES && @names.add(total.name))
        known ? total : total.with(name: OTHER)
      end

      def grown(value, before)
        return value if before.nil? || value < before - ROUNDING

        value - before if value > before
      end
    end
    private_constant :Growth
  end
end
