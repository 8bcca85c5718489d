# frozen_string_literal: true

module Heddle
  # The states of all fibers of all schedulers in this process. The fibers of one scheduler are read at one time.
  module Snapshots
    # A fiber, as the extension reads it from the scheduler.
    Entry = Struct.new(:fiber, :state, :kind, :subject, :events, :seconds, :seconds_left, :block, :resumer,
                       :name, :epoch, :counted, :counted_named, :scheduler) do
      # What the fiber's backtrace says belongs to this entry only if this is true after it was read: the fiber has gone
      # on otherwise, and a server's may serve another request.
      #
      # @return [Boolean] whether the fiber is still in the same state
      def current? = Native.epoch_of(scheduler, fiber) == epoch

      # @return [Fiber, nil] the fiber that awaits this one's end, or that has resumed it
      def parent = resumer || TreeNode.of(fiber)&.parent&.fiber

      # @return [FiberTimes, nil] what the fiber has spent its time on, if that is counted
      def times = FiberTimes.of(counted)

      # @return [FiberTimes, nil] what it has spent its time on since it has its name
      def named_times = FiberTimes.of(counted_named)

      # @return [Proc, nil] what the fiber runs: the program's block, if Heddle's own calls that
      def program_block = TreeNode.of(fiber)&.block || (block && WorkContext.block_of(block))
    end

    # A scheduler, its thread, and its fibers.
    Section = Struct.new(:scheduler, :thread, :fibers)

    # @return [Array<Section>]
    def self.take
      Native.open_schedulers.map do |scheduler|
        entries = Native.snapshot(scheduler).map { |values| Entry.new(*values, scheduler) }
        Section.new(scheduler, Native.owner(scheduler), entries)
      end
    end

    # @param entries [Array<Entry>]
    # @return [Hash{Fiber => Fiber, nil}] the parent of each fiber
    def self.parents(entries)
      entries.to_h { |entry| [entry.fiber, entry.parent] }.compare_by_identity
    end

    # Calls the block with each item and its depth in the tree, parents first. Not recursive: a tree may be deeper than
    # the stack.
    #
    # @param items [Array<#fiber>]
    # @param parents [Hash] see {parents}; a parent that is in it has an item
    # @return [Enumerator] without a block
    def self.each_in_tree(items, parents)
      return enum_for(__method__, items, parents) unless block_given?

      roots, others = items.partition { |item| !parents.key?(parents[item.fiber]) }
      children = others.group_by { |item| parents[item.fiber] }.compare_by_identity
      unvisited = roots.reverse.map { |item| [item, 0] }
      while (item, depth = unvisited.pop)
        yield item, depth
        children.fetch(item.fiber, []).reverse_each { |child| unvisited << [child, depth + 1] }
      end
    end
  end
  private_constant :Snapshots
end
