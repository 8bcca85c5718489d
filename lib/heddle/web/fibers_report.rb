# frozen_string_literal: true

module Heddle
  class Web
    # The fibers of all schedulers. It describes only those that it sends, as a process may have many thousands.
    #
    # @api private
    class FibersReport
      # @param parameters [Hash{String => String}] see {FiberFilter#initialize}
      # @return [Hash]
      # @raise [ArgumentError] for invalid parameters
      def self.report(parameters) = new(FiberFilter.new(parameters)).to_h

      # @param filter [FiberFilter]
      def initialize(filter)
        @filter = filter
        # The scheduler of this thread comes first, as in StatsReport.
        @sections = Snapshots.take.partition { |section| section.scheduler.equal?(Fiber.scheduler) }.flatten(1)
        @description = WaitDescription.new(@sections)
      end

      # @return [Hash] `count` fibers match, of `total`; `limit` is for all schedulers together
      def to_h
        left = @filter.limit
        schedulers = @sections.map do |section|
          rows = FiberRows.new(section.fibers, @filter, @description)
          fibers = rows.first(left).map { |row| describe(row) }
          left -= fibers.size
          { id: section.scheduler.object_id, thread: StatsReport.label(section.thread), total: section.fibers.size,
            count: rows.count, fibers: }
        end
        { pid: Process.pid, limit: @filter.limit, schedulers: }
      end

      private

      def describe(row)
        entry = row.entry
        fiber = entry.fiber
        name = Names.of(fiber)
        described = { id: fiber.object_id, name: name && Text.clean(Names.shortened(name)), state: entry.state,
                      waiting_for: Text.clean(@description.of(entry)), seconds: entry.seconds,
                      block: Text.clean(Backtraces.place(entry.program_block)), parent: entry.parent&.object_id,
                      depth: row.depth, match: row.match }
        described[:backtrace] = backtrace(fiber) if @filter.open.include?(fiber.object_id)
        described
      end

      def backtrace(fiber) = Backtraces.of(fiber).map { |line| Text.clean(line) }
    end
    private_constant :FibersReport
  end
end
