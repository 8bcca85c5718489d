# frozen_string_literal: true

module Heddle
  # What the fibers of a name have done since a scheduler counts that, or between two readings. Times are in seconds.
  #
  # @api private
  # @!attribute [r] name
  #   @return [String, nil] nil for fibers without a name
  # @!attribute [r] begun
  #   @return [Float] when the name got its place, since the counting began: another value says that it was moved to
  #     `other` meanwhile, and counts from zero
  # @!attribute [r] ages
  #   @return [Metrics::Histogram] how long fibers had the name that have lost it, or have ended
  # @!attribute [r] present
  #   @return [Metrics::Histogram] how long those have it that have it now
  NameTotal = Data.define(:name, :begun, :ran, :runnable, :waited, :preemptions, :ages, :present) do
    # @param counts [Array] the other attributes
    # @param ages [Array] what {Metrics::Histogram.of} takes, as `present` is
    # @return [NameTotal]
    def self.of(*counts, ages, present)
      new(*counts, Metrics::Histogram.of(*ages), Metrics::Histogram.of(*present))
    end

    # What was done between two readings of a scheduler. What a name had done that was moved to `other` meanwhile does
    # not count again there.
    #
    # @param earlier [Hash{String, nil => NameTotal}]
    # @param later [Hash{String, nil => NameTotal}]
    # @return [Array<NameTotal>]
    def self.between(earlier, later)
      kept, moved = earlier.values.partition { |total| later[total.name]&.begun == total.begun }
      before = kept.group_by(&:name)
      before["other"] = [*before["other"], *moved]
      later.map { |name, total| before.fetch(name, []).reduce(total, :-) }
    end

    # @return [NameTotal] of two schedulers
    def +(other)
      with(ran: ran + other.ran, runnable: runnable + other.runnable, preemptions: preemptions + other.preemptions,
           waited: waited.merge(other.waited) { |_, one, another| one + another },
           ages: ages + other.ages, present: present + other.present)
    end

    # @param other [NameTotal] what this one was at an earlier time
    # @return [NameTotal] what was done since
    def -(other)
      waits = waited.to_h { |kind, seconds| [kind, grown(seconds, other.waited.fetch(kind, 0.0))] }
      with(ran: grown(ran, other.ran), runnable: grown(runnable, other.runnable),
           preemptions: preemptions - other.preemptions,
           waited: waits.select { |_, seconds| seconds.positive? }, ages: ages - other.ages)
    end

    # @return [Float] seconds
    def waited_in_all = waited.sum(0.0) { |_, seconds| seconds }

    # @return [Float] seconds
    def seconds = ran + runnable + waited_in_all

    # @return [Boolean] whether no fiber had the name
    def empty? = (ages.count + present.count + seconds).zero?

    private

    # Without what floating point numbers have lost: times are whole nanoseconds.
    def grown(seconds, before) = [(seconds - before).round(9), 0.0].max
  end
  private_constant :NameTotal
end
