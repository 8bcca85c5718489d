# frozen_string_literal: true

module Heddle
  module Metrics
    # By how much totals have grown, for a monitoring system that adds up what it is given. It keeps each name for ever,
    # so it gets 100 names at most; all others are one.
    #
    # @api private
    class Growth
      # A total: which one, the name that it is of, and what else tells it apart.
      Key = Data.define(:instrument, :name, :detail)
      NAMES = 100
      OTHER = "other"
      # What floating point numbers may have lost.
      ROUNDING = 1e-6
      private_constant :NAMES, :OTHER, :ROUNDING

      def initialize
        @mutex = Thread::Mutex.new
        @before = {}
        @names = Set[OTHER]
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
          totals = bounded(totals)
          before = moved(@before, totals)
          @before = totals
          totals.to_h { |key, value| [key, grown(value, before[key])] }.compact
        end
      end

      private

      def bounded(totals)
        totals.each_with_object(Hash.new(0)) do |(key, value), found|
          found[key.name.nil? || known?(key.name) ? key : other(key)] += value
        end
      end

      def known?(name) = @names.include?(name) || (@names.size <= NAMES && @names.add(name) && true)

      # When a scheduler forgets a name, it adds what that had counted to the total of all others.
      def moved(before, totals)
        gone = before.reject { |key, _| totals.key?(key) }
        gone.each_with_object(before.dup) { |(key, value), all| all[other(key)] = all.fetch(other(key), 0) + value }
      end

      def other(key) = key.with(name: OTHER)

      def grown(value, before)
        return value if before.nil? || value < before - ROUNDING

        value - before if value > before
      end
    end
    private_constant :Growth
  end
end
