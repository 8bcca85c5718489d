# frozen_string_literal: true

module Heddle
  module Traces
    # Says what a fiber waits for. The kinds are those of `ext/heddle/src/scheduler/wait.rs`.
    class Waits
      # The fiber is on the run queue; the text says since what.
      RUNNABLE = {
        nothing: "starting a fiber", start: "its start", yield: "a yield", preempted: "a preemption",
        raise: "Fiber#raise", woken: "a wake-up before the trace"
      }.freeze
      # The kinds that need no details.
      TEXTS = {
        **WaitDescription::TEXTS,
        sleep: "sleep",
        address: "the addresses of a host",
        resume: "a fiber that it has resumed"
      }.freeze
      # What fibers wait for in methods of Heddle.
      OWN = { "Heddle::TaskWait" => "Heddle.await", "Heddle::Children" => "the end of its children" }.freeze
      private_constant :RUNNABLE, :TEXTS, :OWN

      # @param recorder [TraceRecorder]
      def initialize(recorder)
        @recorder = recorder
        @kinds = recorder.kinds
        @counted = @kinds.to_h
        @classes = {}
      end

      # @param record [Timeline::Record] one that says what a fiber waits for
      # @return [FiberTrack::Wait]
      def of(record)
        FiberTrack::Wait.new(record.time, @kinds.fetch(record.what).first, record.value, record.detail)
      end

      # @return [String, nil] what has made the fiber runnable; nil if it waits
      def runnable_after(wait) = RUNNABLE[wait.kind]

      # @return [Symbol] the kind, as in {FiberTimes#waited}
      def counted(wait) = @counted.fetch(wait.kind)

      # @return [String]
      def text(wait)
        case wait.kind
        when :block then @classes[wait.detail] ||= class_name(@recorder.class_at(wait.detail))
        when :io_wait, :io then "#{WaitDescription.using(wait.detail)} fd #{wait.value}"
        when :process then "process #{wait.value}"
        else TEXTS.fetch(wait.kind)
        end
      end

      private

      def class_name(type)
        type = type.superclass while type&.singleton_class?
        return WaitDescription::HIDDEN unless type

        name = Module.instance_method(:name).bind_call(type) || "an object"
        OWN.fetch(name) { name.delete_prefix("Thread::") }
      end
    end
    private_constant :Waits
  end
end
