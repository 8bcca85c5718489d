# frozen_string_literal: true

module Heddle
  class Web
    # The fibers of one scheduler that are sent: those that match, and in a tree also their ancestors.
    #
    # @api private
    class FiberRows
      # A fiber, its depth in the tree, and whether it matches.
      Row = Data.define(:entry, :depth, :match)
      private_constant :Row

      # @param entry [Snapshots::Entry]
      # @return [FiberTimes, nil] of what the fiber does under its name, if it has one
      def self.times(entry) = entry.named_times || entry.times

      # @return [Float] seconds, or for how long it has been in its state if its times are not counted
      def self.age(entry)
        # The first of the numbers that the extension has counted: a process may have very many fibers. If the counting
        # began while the fiber was in its state, the fiber is older.
        [(entry.counted_named || entry.counted)&.first, entry.seconds].compact.max
      end

      # @return [Integer] how many fibers match
      attr_reader :count

      # @param entries [Array<Snapshots::Entry>]
      # @param filter [FiberFilter]
      # @param description [WaitDescription]
      def initialize(entries, filter, description)
        @entries = entries
        @filter = filter
        @matching = filter.none? ? entries : entries.select { |entry| filter.match?(entry, description) }
        @count = @matching.size
      end

      # @param limit [Integer]
      # @return [Array<Row>] the first rows, as many as there may be
      def first(limit)
        return tree(limit) if @filter.tree?

        by_age = @filter.order == "age"
        longest = @matching.max_by(limit) { |entry| by_age ? FiberRows.age(entry) : entry.seconds }
        longest.map { |entry| Row.new(entry, 0, true) }
      end

      private

      def tree(limit)
        @parents = Snapshots.parents(@entries)
        matching = @matching.to_h { |entry| [entry.fiber, true] }.compare_by_identity
        shown = @filter.none? ? matching : with_ancestors(matching.keys)
        entries = @entries.select { |entry| shown.key?(entry.fiber) }
        Snapshots.each_in_tree(entries, @parents).first(limit).map do |entry, depth|
          Row.new(entry, depth, matching.key?(entry.fiber))
        end
      end

      def with_ancestors(fibers)
        shown = {}.compare_by_identity
        fibers.each do |fiber|
          while fiber && @parents.key?(fiber) && !shown.key?(fiber)
            shown[fiber] = true
            fiber = @parents[fiber]
          end
        end
        shown
      end
    end
    private_constant :FiberRows
  end
end
