# frozen_string_literal: true

module Heddle
  # Says what fibers wait for.
  class WaitDescription
    # The number of fibers that one description names.
    FIBERS = 3
    # The number of characters that it shows of what a fiber says.
    SHOWN = 500
    CLASS = Kernel.instance_method(:class)
    THREAD_PREFIX = "Thread::"
    private_constant :FIBERS, :SHOWN, :CLASS, :THREAD_PREFIX

    # The texts of the kinds of waits that need no details. The kinds are those of `ext/heddle/src/scheduler/wait.rs`.
    TEXTS = {
      start: "its first time slice",
      preempted: "preempted",
      io_select: "IO.select",
      suspend: "Fiber#schedule",
      close: "the end of the other fibers",
      raise: "its next time slice, after Fiber#raise"
    }.freeze
    # The text for an object that programs must not see.
    HIDDEN = "a lock inside Ruby"

    # @param events [Integer] as `IO::READABLE`
    # @return [String] `reading`
    def self.using(events)
      reads = events.anybits?(IO::READABLE | IO::PRIORITY)
      return "reading" unless events.anybits?(IO::WRITABLE)

      reads ? "reading or writing" : "writing"
    end

    # @param sections [Array<Snapshots::Section>]
    # @param searches [Boolean] whether to look for Monitors among all objects of the process
    def initialize(sections, searches: true)
      entries = sections.flat_map(&:fibers)
      @holders = MutexHolders.new(entries.map(&:fiber))
      @resumed = entries.filter_map { |entry| [entry.resumer, entry.fiber] if entry.resumer }.to_h.compare_by_identity
      @descriptors = Descriptors.new
      @searches = searches && ObjectSpace.respond_to?(:reachable_objects_from) && Object.const_defined?(:Monitor)
    end

    # @param entry [Snapshots::Entry]
    # @return [String, nil] nil for a fiber that waits for nothing, and for a fiber that has only yielded
    def of(entry)
      text = said(entry) || text(entry)
      return text unless text && entry.seconds_left

      "#{text}, #{format("%.1f", entry.seconds_left)} s left"
    end

    # @param entry [Snapshots::Entry]
    # @return [Array<Fiber>] those that the entry's fiber is known to wait for: the holder of a Mutex, its children, and
    #   the fibers that it awaits
    def awaited(entry)
      case (blocker = entry.subject)
      when Thread::Mutex then [*@holders.of(blocker)]
      when TaskWait, Children then blocker.fibers
      else []
      end
    end

    private

    IO_KINDS = %i[io_wait io io_select].freeze
    private_constant :IO_KINDS

    # @return [String, nil] what the fiber itself says; for an IO, with that
    def said(entry)
      return unless entry.state == :waiting && (said = WaitNames.of(entry.fiber)) && entry.current?

      said = Text.line(said.to_s, SHOWN)
      IO_KINDS.include?(entry.kind) ? "#{said} (#{text(entry)})" : said
    end

    def text(entry)
      case entry.kind
      when :block then blocked(entry)
      when :sleep then asleep(entry)
      when :io_wait, :io then @descriptors.wait_for(entry.subject, self.class.using(entry.events))
      when :nothing then resumed(entry)
      when :address then "worker: resolving #{entry.subject}"
      when :process then "process #{entry.subject}"
      else TEXTS[entry.kind]
      end
    end

    def resumed(entry)
      fiber = @resumed[entry.fiber]
      "#{Names.label(fiber)}, which it has resumed" if fiber
    end

    # `ConditionVariable#wait` sleeps, and so does `Heddle.every`.
    def asleep(entry)
      method = waiting_method(entry)
      return method if method&.start_with?("Heddle")

      method == "wait" ? "ConditionVariable#wait" : "sleep"
    end

    def blocked(entry)
      case (blocker = entry.subject)
      when nil then HIDDEN
      when Thread::Mutex then locked(blocker, entry)
      when Thread::Queue then called(blocker, waiting_method(entry)) + known_of(blocker)
      when TaskWait then "#{waiting_method(entry) || "Heddle.await"}: #{list(awaited(entry))}"
      when Children then "the end of its children: #{list(awaited(entry))}"
      else called(blocker, waiting_method(entry))
      end
    end

    # @return [String, nil] nil for a fiber that has gone on since the snapshot
    def waiting_method(entry)
      method = Backtraces.waiting_method(entry.fiber)
      method if entry.current?
    end

    def called(blocker, method)
      case blocker
      when Thread then "Thread##{method || "join"} of #{blocker.inspect}"
      else method&.start_with?("Heddle") ? method : call(blocker, method)
      end
    end

    def locked(mutex, entry)
      holder = awaited(entry).first
      lock = monitor?(mutex, entry) ? "Monitor" : "Mutex"
      holder ? "#{lock} held by #{Names.label(holder)}#{place_of(holder)}" : lock
    end

    # To Ruby a fiber that waits for a Monitor waits for the Mutex in it. With `objspace` loaded, as in a test, that
    # Monitor is found, until the program starts its first Ractor.
    def monitor?(mutex, entry)
      (@searches && of_monitors.key?(mutex)) || (Backtraces.in_monitor?(entry.fiber) && entry.current?)
    end

    # What a Monitor's instance variables have comes before its own Mutex.
    def of_monitors
      @of_monitors ||= ObjectSpace.each_object(::Monitor).to_h do |monitor|
        [ObjectSpace.reachable_objects_from(monitor).grep(Thread::Mutex).last, true]
      end.compare_by_identity
    end

    # Many fibers may wait for the same one.
    def place_of(holder)
      @places ||= {}.compare_by_identity
      @places[holder] ||= Backtraces.place_in(Backtraces.of(holder).first)&.then { |place| " at #{place}" } || ""
    end

    # @return [String] ` on one made at app.rb:12 (by "GET /orders"; 2 of 2; 20 wait)`, or as much as is known
    def known_of(queue)
      place, name = QueueOrigins.of(queue)
      details = []
      details << "by#{Names.quoted(name)}" if name
      details << "#{queue.size} of #{queue.max}" if queue.is_a?(Thread::SizedQueue)
      details << "#{queue.num_waiting} wait" if queue.num_waiting > 1
      "#{" on one made at #{place}" if place}#{" (#{details.join("; ")})" if details.any?}"
    end

    # @return [String] `Queue#pop`
    def call(blocker, method)
      type = CLASS.bind_call(blocker)
      "#{(type.name || type.inspect).delete_prefix(THREAD_PREFIX)}#{"##{method}" if method}"
    end

    def list(fibers)
      named = fibers.first(FIBERS).map { |fiber| Names.label(fiber) }
      named << "#{fibers.size - FIBERS} more" if fibers.size > FIBERS
      named.join(", ")
    end
  end
  private_constant :WaitDescription
end
