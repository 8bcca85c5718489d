# frozen_string_literal: true

module Heddle
  class Web
    # The fibers of all schedulers. It describes only those that it sends, as a process may have many thousands.
    #
    # @api private
    class FibersReport
      # @param parameters [Hash{String => String}] see {FiberFilter#initialize}
      # @param mount [String] where the application is mounted
      # @raise [ArgumentError] for invalid parameters
      def initialize(parameters, mount)
        @filter = FiberFilter.new(parameters, mount)
      end

      # @return [Object] what the report depends on
      def key = @filter.key

      # @return [Hash] `count` fibers match, of `total`; `limit` is for all schedulers together
      def to_h
        # The scheduler of this thread comes first, as in StatsReport.
        sections = Snapshots.take.partition { |section| section.scheduler.equal?(Fiber.scheduler) }.flatten(1)
        description = WaitDescription.new(sections, searches: false)
        left = @filter.limit
        schedulers = sections.map do |section|
          scheduler(section, description, left).tap { |report| left -= report[:fibers].size }
        end
        { pid: Process.pid, limit: @filter.limit, schedulers: }
      end

      private

      def scheduler(section, description, limit)
        rows = FiberRows.new(section.fibers, @filter, description)
        { id: section.scheduler.object_id, thread: StatsReport.label(section.thread), total: section.fibers.size,
          count: rows.count, fibers: rows.first(limit).map { |row| describe(row, description) } }
      end

      def describe(row, description)
        entry = row.entry
        fiber = entry.fiber
        { id: fiber.object_id, name: Text.of_name(entry.name), state: entry.state,
          waiting_for: Text.clean(description.of(entry)), seconds: entry.seconds,
          block: Text.clean(Backtraces.place(entry.program_block)), parent: entry.parent&.object_id,
          depth: row.depth, match: row.match, times: times(entry) }
      end

      # @return [Hash, nil]
      def times(entry)
        return unless (times = FiberRows.times(entry))

        { **times.to_h, waited: times.waited.transform_keys { |kind| Text.clean(kind.to_s) } }
      end
    end
    private_constant :FibersReport
  end
end
