# frozen_string_literal: true

module Heddle
  module Testing
    # What may wake a fiber of a test from outside: the other threads. The extension asks when all fibers wait.
    module Surroundings
      VARIABLE = :heddle_testing_threads
      # Waits that only another fiber or thread ends, if they have no time limit.
      ENDLESS = [*Deadlocks::ENDLESS, :nothing].freeze
      RUNNING = %w[run aborting].freeze
      private_constant :VARIABLE, :ENDLESS, :RUNNING

      class << self
        # Notes which threads there are. They belong to the surroundings of the test that the block runs.
        def noted
          outer = Thread.current.thread_variable_get(VARIABLE)
          Thread.current.thread_variable_set(VARIABLE, Thread.list)
          yield
        ensure
          Thread.current.thread_variable_set(VARIABLE, outer)
        end

        # A thread of the surroundings is ignored while it waits for something, such as a time. One that runs may never
        # end: it counts as one that waits.
        #
        # @return [Array(Boolean, Boolean)] whether a thread of the test runs, and whether another one may wake a fiber
        def threads
          before = Thread.current.thread_variable_get(VARIABLE) || []
          running, waiting = (Thread.list - [Thread.current]).partition { |thread| RUNNING.include?(thread.status) }
          outer, own = running.partition { |thread| before.include?(thread) }
          [own.any?, outer.any? || (waiting - before).any? { |thread| !Deadlocks.asleep?(thread) }]
        end

        # Called when there is no timer and no I/O either.
        #
        # @return [Deadlock, nil] an error, if nothing can ever wake a fiber
        def deadlock
          return if threads.any?

          sections = Snapshots.take
          fibers = sections.select { |section| section.thread.equal?(Thread.current) }.flat_map(&:fibers)
          Deadlock.new(message(fibers, sections)) if fibers.all? { |entry| ENDLESS.include?(entry.kind) }
        end

        private

        def message(fibers, sections)
          descriptions = WaitDescription.new(sections)
          lines = fibers.reject { |entry| entry.kind == :close }.map do |entry|
            wait = Text.clean(descriptions.of(entry) || "nothing")
            "  #{Story.label(entry.fiber)} waits for #{wait}#{place(entry.fiber)}"
          end
          "Deadlock: all fibers wait, and nothing can wake one.\n#{lines.join("\n")}"
        end

        def place(fiber)
          files = Run.of_thread&.files or return
          found = fiber.backtrace_locations&.find { |location| files.include?(location.path) }
          " at #{files.place(found.path, found.lineno)}" if found
        end
      end
    end
    private_constant :Surroundings
  end
end
