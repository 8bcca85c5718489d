# frozen_string_literal: true

module Ecosystem
  # What runs the checks: plain threads, or the fibers of a Heddle scheduler.
  module Tasks
    CONTESTANTS = %w[threads io_uring poll io_uring-preempted poll-preempted].freeze

    # Tasks are threads, and Heddle is not loaded.
    class Threads
      def run = yield

      def start(&) = Thread.new(&).tap { |thread| thread.report_on_exception = false }
    end

    # Tasks are fibers.
    class Fibers
      def initialize(backend, preempt)
        require "heddle"
        @options = { backend: backend.to_sym, preempt: preempt ? :all : :none }
      end

      def run(&) = Heddle.run(**@options, &)

      def start(&) = Fiber.schedule(&)
    end

    def self.named(contestant)
      return Threads.new if contestant == "threads"

      backend, preempt = contestant.split("-")
      Fibers.new(backend, preempt)
    end
  end
end
