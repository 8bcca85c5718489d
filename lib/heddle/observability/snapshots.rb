# frozen_string_literal: true

module Heddle
  # The states of all fibers of all schedulers in this process. The fibers of one scheduler are read at one time.
  module Snapshots
    # A fiber, as the extension reads it from the scheduler.
    Entry = Struct.new(:fiber, :state, :kind, :subject, :events, :seconds, :seconds_left, :block, :resumer) do
      # @return [Fiber, nil] the fiber that awaits this one's end, or that has resumed it
      def parent = resumer || Task.of(fiber)&.parent&.fiber

      # @return [Proc, nil] what the fiber runs: the program's block, if Heddle's own calls that
      def program_block = Task.of(fiber)&.block || block
    end

    # A scheduler, its thread, and its fibers.
    Section = Struct.new(:scheduler, :thread, :fibers)

    # @return [Array<Section>]
    def self.take
      Scheduler.__send__(:open_schedulers).map do |scheduler|
        entries = scheduler.__send__(:snapshot).map { |values| Entry.new(*values) }
        Section.new(scheduler, scheduler.__send__(:owner), entries)
      end
    end

    # @param sections [Array<Section>]
    # @return [MutexHolders]
    def self.holders(sections)
      MutexHolders.new(sections.flat_map { |section| section.fibers.map(&:fiber) })
    end
  end
  private_constant :Snapshots
end
