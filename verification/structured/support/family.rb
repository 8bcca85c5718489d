# frozen_string_literal: true

module Families
  # An error. Its message says which fiber or limit it comes from.
  class Expected < StandardError; end

  # The fibers of one run, with what each has noted.
  class Family
    # @return [Heddle::Task]
    attr_reader :parent

    def initialize(parent, child)
      @notes = {}.compare_by_identity
      @child = child
      @parent = spin { parent.block.call(self) }
    end

    # @return [Heddle::Task]
    def start_child = spin(**@child.options) { @child.block.call(self) }

    # Starts a fiber that notes when it begins and ends, which no stop can prevent. The start is one step, as nothing in
    # it reaches other fibers before its end.
    def spin(**options)
      notes = []
      Heddle.without_preemption do
        task = Heddle.spin(**options) do
          notes << :begun
          yield
        ensure
          notes << :ended
        end
        @notes[task] = notes
        task
      end
    end

    # @param stopped [Boolean] whether the parent is stopped, perhaps before it has begun
    # @return [Object] the parent's value, or the message of its error
    def outcome(stopped)
      if stopped
        # Its error is raised here, if it has failed meanwhile.
        Heddle.snooze
        parent.stop
      end
      parent.await
    rescue Expected => e
      e.message
    end

    # @raise [RuntimeError] unless each fiber has ended, and each that has begun has run its ensure clause once
    def check_ends
      @notes.each do |task, notes|
        raise "a child has outlived its parent" if task.alive?
        raise "it has #{notes}" unless [[], %i[begun ended]].include?(notes)
      end
    end
  end
end
