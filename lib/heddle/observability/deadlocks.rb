# frozen_string_literal: true

module Heddle
  # Finds schedulers whose fibers all wait and that nothing can wake: there is no timer, no I/O, and no thread that
  # could do it.
  class Deadlocks
    # Waits that only another fiber or thread ends, if they have no time limit.
    ENDLESS = %i[block sleep suspend close].freeze
    # What Ruby calls a thread that waits without a limit for another thread, as in `Queue#pop`.
    ASLEEP = / sleep_forever>\z/
    private_constant :ASLEEP

    # @param thread [Thread]
    # @return [Boolean] whether it waits, without a limit, for another thread
    def self.asleep?(thread) = thread.inspect.match?(ASLEEP)

    # @param sections [Array<Snapshots::Section>]
    # @param description [WaitDescription] of these sections
    def initialize(sections, description)
      @description = description
      @stuck = sections.select { |section| stuck?(section) }
      @stuck = [] if threads_that_may_wake?
    end

    # @param section [Snapshots::Section]
    # @return [Array<String>] the lines of a report; empty without a deadlock
    def report(section)
      return [] unless @stuck.include?(section)

      fibers = section.fibers.count { |entry| entry.kind != :close }
      cycle = cycle(section)
      lines = ["Deadlock: all #{fibers} fibers wait, and nothing can wake one: there is no timer, no I/O, and no " \
               "other thread that runs, apart from the one that reports this."]
      lines << "Cycle: #{[*cycle, cycle.first].map { |fiber| Names.label(fiber) }.join(" waits for ")}." if cycle
      lines
    end

    private

    def stuck?(section)
      counts = Native.counts(section.scheduler)
      counts.values_at(:timers, :operations).all?(&:zero?) &&
        section.fibers.any? { |entry| entry.kind != :close } &&
        section.fibers.all? { |entry| entry.state == :waiting && ENDLESS.include?(entry.kind) }
    end

    def threads_that_may_wake?
      others = Thread.list - [Thread.current, *@stuck.map(&:thread)]
      !others.all? { |thread| Deadlocks.asleep?(thread) }
    end

    # @return [Array<Fiber>, nil] fibers of which each waits for the next, and the last for the first
    def cycle(section)
      followed = {}.compare_by_identity
      edges = section.fibers.to_h { |entry| [entry.fiber, @description.awaited(entry).first] }.compare_by_identity
      edges.keys.lazy.filter_map { |fiber| cycle_after(fiber, edges, followed) }.first
    end

    # @param followed [Hash] the fibers from which the waits have been followed
    def cycle_after(fiber, edges, followed)
      path = {}.compare_by_identity
      while fiber && !followed[fiber]
        followed[fiber] = path[fiber] = true
        fiber = edges[fiber]
      end
      path.keys.drop_while { |each| !each.equal?(fiber) } if path[fiber]
    end
  end
  private_constant :Deadlocks
end
