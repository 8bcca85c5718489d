# frozen_string_literal: true

module Heddle
  module Metrics
    # By how much totals have grown, for a monitoring system that adds up what it is given.
    #
    # @api private
    class Growth
      # A total: which one, the name that it is of, and what else tells it apart.
      Key = Data.define(:instrument, :name, :detail)
      # What floating point numbers may have lost.
      ROUNDING = 1e-6
      private_constant :ROUNDING

      def initialize
        @mutex = Thread::Mutex.new
        @before = {}
      end

      # Any thread may call this.
      #
      # @param totals [Hash{Key => Numeric}]
      # @return [Hash{Key => Numeric}] what was added since the last call, without what has not changed
      def take(totals)
        @mutex.synchronize do
          # A forked child counts from zero.
          @before = {} unless @generation == Native.generation
          @generation = Native.generation
          before = @before
          @before = totals
          totals.to_h { |key, value| [key, grown(value, before[key])] }.compact
        end
      end

      private

      def grown(value, before)
        return value if before.nil? || value < before - ROUNDING

        value - before if value > before
      end
    end
    private_constant :Growth
  end
end
