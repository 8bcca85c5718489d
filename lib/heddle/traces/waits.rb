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
      PLAIN = {
        4 => "sleep", 7 => "IO.select", 10 => "the addresses of a host", 11 => "Fiber#schedule",
        12 => "the end of the other fibers", 14 => "a fiber that it has resumed"
      }.freeze
      BLOCK = 5
      READY = 6
      TRANSFER = 8
      PROCESS = 9
      # The kinds of {FiberTimes#waited}.
      KINDS = {
        4 => :sleep, 5 => :block, 6 => :io, 7 => :io, 8 => :io, 9 => :process, 10 => :address, 11 => :suspend,
        12 => :close, 14 => :resume
      }.freeze
      # What fibers wait for in methods of Heddle.
      OWN = { "Heddle::TaskWait" => "Heddle.await", "Heddle::Task" => "the end of its children" }.freeze
      private_constant :KINDS, :RUNNABLE, :PLAIN, :BLOCK, :READY, :TRANSFER, :PROCESS, :OWN

      # @param recorder [TraceRecorder]
      def initialize(recorder)
        @recorder = recorder
        @classes = {}
      end

      # @return [String, nil] what has made the fiber runnable; nil if it waits
      def runnable_after(wait) = RUNNABLE[wait.what]

      # @return [Symbol]
      def kind(wait) = KINDS.fetch(wait.what, :other)

      # @return [String]
      def text(wait)
        case wait.what
        when BLOCK then blocker(wait.detail)
        when READY, TRANSFER then "#{WaitDescription.using(wait.detail)} fd #{wait.value}"
        when PROCESS then "process #{wait.value}"
        else PLAIN.fetch(wait.what, "something else")
        end
      end

      private

      def blocker(number)
        @classes[number] ||= class_name(@recorder.class_at(number))
      end

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
