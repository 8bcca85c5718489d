# frozen_string_literal: true

module Heddle
  module Async
    # The root of a scheduler's tree of tasks. In Async that is the scheduler itself.
    class Root < ::Async::Node
      # A list of tasks that tells when one has ended, or has become transient.
      class Children < ::Async::Children
        # @param root [Root]
        def initialize(root)
          super()
          @root = root
        end

        # @param transient [Boolean]
        def adjust_transient_count(transient)
          super.tap { @root.changed }
        end

        private

        def removed(node)
          super
          @root.changed
          node
        end
      end
      private_constant :Children

      # Seconds after which {terminate} cancels again.
      AGAIN = 0.01
      private_constant :AGAIN

      # @return [Scheduler] what Async takes for the root
      attr_reader :root

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        super(nil)
        @root = scheduler
        @generation = Native.generation
        @changes = Thread::Queue.new
        @observed = false
        @children = Children.new(self)
        @failure = nil
        @interrupted = false
      end

      public :add_child, :remove_child

      # @return [Boolean] whether the tasks are of this process: a forked child has none of its parent's
      def current? = @generation == Native.generation

      # A task has ended by an exception that is no StandardError. It cancels the others.
      def fail_with(exception)
        @failure ||= exception
        cancel(true, cause: exception)
        changed
      end

      # The wait in {finished_all?} ends, and the tasks go on. Any thread may call this.
      def interrupt
        @interrupted = true
        changed
      end

      # Waits until all tasks but transient ones have ended, then cancels these, and waits for their ends. If an error
      # that is no StandardError ends a task, it cancels the others at once.
      #
      # @return [Boolean] false if it was interrupted
      def finished_all?
        Context.in_nonblocking_fiber do
          observing do
            @changes.pop until finished? || @failure || @interrupted
            end_all unless @interrupted
          end
        end
        interrupted = @interrupted
        @interrupted = false
        !interrupted
      end

      # @return [Exception, nil] what has ended a task and is no StandardError; the first call after that gets it
      def take_failure
        failure = @failure
        @failure = nil
        failure
      end

      # Cancels all tasks, and waits for their ends. Like Async's reactor it cancels them again and again: also a task
      # that waits in an `ensure` clause, or has deferred its cancellation.
      def terminate
        Context.in_nonblocking_fiber do
          observing do
            while children?
              cancel
              @changes.pop(timeout: AGAIN) if children?
            end
          end
        end
      end

      # Cancels all tasks, transient ones included.
      #
      # @param later [Boolean] whether the current task is cancelled at its next wait
      # @param cause [Exception, nil]
      def cancel(later = false, cause: nil) # rubocop:disable Style/OptionalBooleanParameter -- as in Async
        cause ||= ::Async::Cancel::Cause.for("Cancelling task!")
        @children.each { |child| child.cancel(later, cause:) }
      end

      # A task has ended, or has become transient.
      def changed
        @changes << true if @observed
      end

      private

      def observing
        @observed = true
        yield
      ensure
        @observed = false
        @changes.clear
      end

      # A task that was cancelled is transient no more. It may start others before it ends.
      def end_all
        while children?
          cancel if finished?
          @changes.pop if children?
        end
      end
    end
    private_constant :Root
  end
end
