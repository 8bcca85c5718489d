# frozen_string_literal: true

module Heddle
  module Async
    # The root of a scheduler's tree of tasks. In Async that is the scheduler itself.
    class Root < ::Async::Node
      # A list of tasks that tells when one has ended, or has become transient.
      class Children < ::Async::Children
        # @return [Thread::Queue, nil] what is told so
        attr_writer :observer

        def initialize
          super
          @observer = nil
        end

        # @param transient [Boolean]
        def adjust_transient_count(transient)
          super.tap { changed }
        end

        # @return [void]
        def changed = @observer&.push(true)

        private

        # Each task that another one has not started ends by this. So it does not call {changed}.
        def removed(node)
          super
          @observer&.push(true)
          node
        end
      end
      private_constant :Children

      # Seconds after which {terminate} cancels again.
      AGAIN = 0.01
      private_constant :AGAIN

      # @return [Scheduler] what Async takes for the root
      attr_reader :root

      # @return [Integer] of the process that the tasks are of: a forked child has none of its parent's
      attr_reader :generation

      # @param scheduler [Scheduler]
      # @param is_reactor [Boolean] whether {Async.default!} has made it
      # @param is_closed [Boolean] whether it was closed
      def initialize(scheduler, is_reactor: false, is_closed: false)
        super(nil)
        @root = scheduler
        @is_reactor = is_reactor
        @is_closed = is_closed
        @generation = Native.generation
        @changes = Thread::Queue.new
        @children = Children.new
        @failure = nil
        @interrupted = false
      end

      # @!method reactor?
      #   @return [Boolean] whether {Async.default!} has made the scheduler
      # @!method closed?
      #   @return [Boolean] whether the scheduler was closed
      attr_reader :is_reactor, :is_closed
      alias reactor? is_reactor
      alias closed? is_closed

      # The scheduler was closed.
      #
      # @return [void]
      def close = @is_closed = true

      # @return [Root] of a scheduler whose tasks a fork has left in the parent
      def without_tasks = Root.new(@root, is_reactor: @is_reactor, is_closed: @is_closed)

      # Async's own methods, which tasks call. `public` would make methods that Ruby searches for in each call.
      %i[add_child remove_child].each { |name| define_method(name, ::Async::Node.instance_method(name)) }

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

      private

      # A task has ended, or has become transient.
      def changed = @children.changed

      def observing
        @children.observer = @changes
        yield
      ensure
        @children.observer = nil
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
