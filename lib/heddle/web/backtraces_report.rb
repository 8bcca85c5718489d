# frozen_string_literal: true

module Heddle
  class Web
    # The backtraces of some fibers.
    #
    # @api private
    class BacktracesReport
      # How many fibers a request may ask for.
      LIMIT = 50
      private_constant :LIMIT

      # @param parameters [Hash{String => String}] the request's: `ids`, with commas between them
      def initialize(parameters, _mount)
        @ids = parameters["ids"].to_s.split(",").first(LIMIT).map(&:to_i)
      end

      # @return [nil] the report is made anew for each request
      def key = nil

      # @return [Hash] `fibers` has the name that each fiber has now, and its backtrace, which is empty for a fiber that
      #   has not started. A fiber that has ended is left out.
      def to_h
        found = Snapshots.take.flat_map(&:fibers).select { |entry| @ids.include?(entry.fiber.object_id) }
        { pid: Process.pid, fibers: found.map { |entry| describe(entry.fiber) } }
      end

      private

      # The name comes first: a backtrace that is of the next request already has its name at worst.
      def describe(fiber)
        frames = Frames.of(Backtraces.of(fiber))
        name = Names.of(fiber)
        { id: fiber.object_id, name: name && Text.clean(Names.shortened(name)), backtrace: frames }
      end
    end
    private_constant :BacktracesReport
  end
end
