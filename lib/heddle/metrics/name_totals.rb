# frozen_string_literal: true

module Heddle
  module Metrics
    # What a scheduler has counted by name, for monitoring systems: see {NameReport}. There are at most 100 names, and
    # `other`; fibers without a name are left out.
    #
    # @api private
    module NameTotals
      # A name: how many fibers had it and for how long, as a histogram, and what they spent that time on.
      Total = Data.define(:name, :count, :sum, :buckets, :max, :ran, :runnable, :waited)
      private_constant :Total

      # @param scheduler [Scheduler]
      # @return [Array<Total>] empty if nothing is counted
      def self.of(scheduler)
        Native.name_totals(scheduler).filter_map do |values|
          name, _, count, _, _, max, ran, runnable, waited, _, sum, buckets = values
          next if name.nil? || (count.zero? && ran.zero?)

          Total.new(name: NameReport.text(name), count:, sum:, buckets:, max:, ran:, runnable:, waited:)
        end
      end
    end
    private_constant :NameTotals
  end
end
