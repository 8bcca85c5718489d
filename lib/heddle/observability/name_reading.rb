# frozen_string_literal: true

module Heddle
  # What the schedulers of this process have counted by name until one time. The difference of two readings is what was
  # done in between.
  #
  # @api private
  class NameReading
    # What a scheduler has counted: for how many seconds, what by name, and which fibers were late.
    Counted = Struct.new(:seconds, :totals, :late) do
      # @param earlier [Counted, nil]
      # @return [Array<NameTotal>]
      def since(earlier) = earlier ? NameTotal.between(earlier.totals, totals) : totals.values
    end
    private_constant :Counted

    # @return [Float] when it was taken, by the clock of {Context.now}
    attr_reader :at
    # @return [Object] what {NameReport} tells of the time until the next reading that it keeps
    attr_accessor :span

    def initialize
      @at = Context.now
      @schedulers = Native.open_schedulers.to_h { |scheduler| [scheduler.object_id, read(scheduler)] }.compact
    end

    # @param before [NameReading, nil] nil stands for the beginning of the counting
    # @return [Float] for how many seconds it was counted since then
    def seconds_since(before)
      counted = @schedulers.values.map(&:seconds).max || 0.0
      before ? [counted, at - before.at].min : counted
    end

    # @param before [NameReading, nil]
    # @return [Array<NameTotal>] what was done since then, by name
    def since(before)
      totals = @schedulers.flat_map { |id, counted| counted.since(before&.of(id, at - counted.seconds)) }
      totals.group_by(&:name).map { |_, parts| parts.reduce(:+) }.reject(&:empty?)
    end

    # @return [Array<Array>] for each fiber that was late in the last seconds: how many seconds ago it was, its name,
    #   how long it waited, and for each name that ran meanwhile how long it did. The last one first
    def late = @schedulers.values.flat_map(&:late).sort_by(&:first)

    protected

    # @return [Counted, nil] nil if the scheduler has begun to count later
    def of(id, began) = (@schedulers[id] if began <= at)

    private

    def read(scheduler)
      seconds, _, totals, late = Native.name_totals(scheduler)
      Counted.new(seconds, totals.to_h { |values| [values.first, NameTotal.of(*values)] }, late) if seconds
    end
  end
  private_constant :NameReading
end
