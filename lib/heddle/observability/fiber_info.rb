# frozen_string_literal: true

module Heddle # :nodoc:
  # What {Heddle.fibers} tells about a fiber. The object is frozen; it tells what was the case when it was made. It
  # keeps the fiber, and so the fiber's memory, from being collected.
  #
  # @!attribute [r] id
  #   @return [Integer] the fiber's `object_id`, which stays the same
  # @!attribute [r] fiber
  #   @return [Fiber]
  # @!attribute [r] name
  #   @return [String, nil] see {Heddle.annotate}
  # @!attribute [r] state
  #   @return [:running, :runnable, :waiting]
  # @!attribute [r] waiting_for
  #   @return [String, nil] what the fiber waits for, such as `"Queue#pop"` or `"sleep, 3.2 s left"`; nil if it runs, or
  #     has only let other fibers run. The wording may change.
  # @!attribute [r] seconds
  #   @return [Float] for how long the fiber has been in this state. The scheduler does not read the clock for each
  #     switch, so a state begins at the time of the scheduler's last poll of timers and I/O: at most 0.2 ms too early
  #     while fibers switch, one tick beside preempted fibers, and as long as a fiber has computed without a switch
  #     before it.
  # @!attribute [r] parent
  #   @return [Integer, nil] the id of the fiber that waits for this one's end (see {Heddle.spin}), or that has resumed
  #     it
  # @!attribute [r] thread
  #   @return [Thread]
  # @!attribute [r] scheduler
  #   @return [Scheduler]
  # @!attribute [r] times
  #   @return [FiberTimes, nil] what the fiber has spent its time on, with `stats: :detailed` or while the dashboard of
  #     {Heddle::Web} is open
  # @!attribute [r] named_times
  #   @return [FiberTimes, nil] what it has spent its time on since it got its name; nil also for a fiber without one
  FiberInfo = Data.define(:id, :fiber, :name, :state, :waiting_for, :seconds, :parent, :thread, :scheduler, :times,
                          :named_times) do
    # Where the fiber is now, without Heddle's own frames. Computed at each call.
    #
    # @return [Array<String>] empty if the fiber has not started, or has ended
    # @example
    #   Heddle.fibers.first.backtrace # => ["app.rb:12:in 'Queue#pop'", "app.rb:12:in 'block in <main>'"]
    def backtrace
      Backtraces.of(fiber)
    end

    # @return [String] the fiber in one line
    # @example
    #   Heddle.fibers.first # => #<Heddle::FiberInfo fiber 16 "clock" (waiting, 3.2 s): sleep, 1.8 s left>
    def inspect
      "#<#{self.class} #{self}>"
    end

    # @return [String] the fiber in one line
    def to_s
      "fiber #{id}#{Names.quoted(name)} (#{state}, #{format("%.1f", seconds)} s)#{": #{waiting_for}" if waiting_for}"
    end
  end

  # Makes {FiberInfo}s.
  module FiberInfos
    # @param sections [Array<Snapshots::Section>]
    # @param description [WaitDescription] of these sections
    # @return [Array<Array<FiberInfo>>] those of each section
    def self.of(sections, description)
      sections.map do |section|
        [].tap do |infos|
          RareCollections.each(section.fibers) { |entry| infos << info(entry, section, description) }
        end
      end
    end

    def self.info(entry, section, description)
      fiber = entry.fiber
      FiberInfo.new(
        id: fiber.object_id, fiber:, name: entry.name, state: entry.state,
        waiting_for: description.of(entry)&.freeze, seconds: entry.seconds, parent: entry.parent&.object_id,
        thread: section.thread, scheduler: section.scheduler, times: entry.times, named_times: entry.named_times
      )
    end
    private_class_method :info
  end
  private_constant :FiberInfos

  class << self
    # The fibers of all schedulers of this process: those that have been started by a scheduler and have not ended, and
    # others that are in a method of the scheduler, such as a thread's root fiber that waits for the end of the others.
    #
    # Any thread may call this, in a fiber or outside, also a trap handler.
    #
    # @return [Array<FiberInfo>]
    # @example The fibers that have waited for longer than a minute
    #   Heddle.fibers.select { |fiber| fiber.state == :waiting && fiber.seconds > 60 }
    def fibers
      sections = Snapshots.take
      FiberInfos.of(sections, WaitDescription.new(sections)).flatten
    end
  end
end
