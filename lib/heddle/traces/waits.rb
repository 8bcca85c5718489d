# frozen_string_literal: true

module Heddle
  module Traces
    # Says what a fiber waits for, by the numbers of `ext/heddle/src/scheduler/state/tracing.rs`.
    class Waits
      # The fiber is on the run queue; the text says since what.
      RUNNABLE = {
        0 => "starting a fiber", 1 => "its start", 2 => "a yield", 3 => "a preemption", 13 => "Fiber#raise",
        15 => "a wake-up before the trace"
      }.freeze
      # It has not started.
      UNSTARTED = 1
      # It was preempted.
      PREEMPTED = 3
      # The kind, as in {FiberTimes#waited}, and the text, if that has no details.
      WAITING = {
        4 => [:sleep, "sleep"], 5 => [:block], 6 => [:io], 7 => [:io, "IO.select"], 8 => [:io], 9 => [:process],
        10 => [:address, "the addresses of a host"], 11 => [:suspend, "Fiber#schedule"],
        12 => [:close, "the end of the other fibers"], 14 => [:resume, "a fiber that it has resumed"]
      }.freeze
      # What fibers wait for in methods of Heddle.
      OWN = { "Heddle::TaskWait" => "Heddle.await", "Heddle::Children" => "the end of its children" }.freeze
      private_constant :RUNNABLE, :WAITING, :OWN

      # @param recorder [TraceRecorder]
      def initialize(recorder)
        @recorder = recorder
        @classes = {}
      end

      # @return [String, nil] what has made the fiber runnable; nil if it waits
      def runnable_after(wait) = RUNNABLE[wait.what]

      # @return [Symbol]
      def kind(wait) = WAITING.fetch(wait.what, [:other]).first

      # @return [String]
      def text(wait)
        kind, text = WAITING.fetch(wait.what, [:other, "something else"])
        case kind
        when :block then @classes[wait.detail] ||= class_name(@recorder.class_at(wait.detail))
        when :process then "process #{wait.value}"
        else text || "#{WaitDescription.using(wait.detail)} fd #{wait.value}"
        end
      end

      private

      def class_name(type)
        type = type.superclass while type&.singleton_class?
        return "a lock inside Ruby" unless type

        name = Module.instance_method(:name).bind_call(type) || "an object"
        OWN.fetch(name) { name.delete_prefix("Thread::") }
      end
    end
    private_constant :Waits
  end
end
