# frozen_string_literal: true

module Heddle
  module Async
    # What Async asks of a scheduler, besides the hooks.
    module Protocol
      # What a fiber waits for that has called {#transfer}.
      TRANSFER = :"Async's transfer"
      # Seconds. There is no loop that could run once.
      MOMENT = 0.001
      private_constant :TRANSFER, :MOMENT

      # Starts a task. It runs at once, until it first waits.
      #
      # @return [::Async::Task]
      # @raise [::Async::Scheduler::ClosedError]
      def async(*arguments, **options, &block)
        raise ::Async::Scheduler::ClosedError if closed?

        # No tick comes between the two, as this is cooperative code: what ends transient tasks must not find one that
        # was not run yet.
        ::Async::Task.new(::Async::Task.current? || self, **options, &block).tap { |task| task.run(*arguments) }
      end

      # `Fiber.schedule` in a task, and on a scheduler that {Async.default!} has made, starts a task, as on Async's
      # scheduler: servers of Async's gems start each connection's task so. With options it starts a fiber.
      #
      # @return [Fiber]
      # @raise [::Async::Scheduler::ClosedError]
      def fiber(*options, &block) # rubocop:disable Metrics -- each call for each task costs
        # Read once, as an instance variable of the scheduler takes a search in a table of Ruby's.
        known = @tasks
        task = ::Async::Task
        parent = task.current?
        parent ||= known.generation == Native.generation ? known : tasks if known&.reactor?
        return super unless parent && block && options.empty?
        raise ::Async::Scheduler::ClosedError if known&.closed?

        # A lambda would refuse the task.
        work = block.lambda? && block.arity.zero? ? proc { block.call } : block
        # Not by {#async}, which would make two objects more. `run` returns what {Tasks} returns.
        task.new(parent, &work).run
      end
      ruby2_keywords :fiber

      # Waits until all tasks and all other fibers have ended; transient tasks are cancelled when no others are left.
      #
      # @yieldparam task [::Async::Task] the block is a task
      # @return [::Async::Task, nil] the block's task
      # @raise [::Async::Scheduler::ClosedError]
      # @raise [Exception] what has ended a task and is no StandardError
      def run(*, **, &block)
        raise ::Async::Scheduler::ClosedError if closed?

        task = async(*, **, &block) if block
        has_finished = own_tasks.nil? || own_tasks.finished_all?
        raise_failure
        super() if has_finished
        task
      rescue SignalException
        end_tasks(&:cancel)
        raise
      end

      # Lets other fibers run for a moment. Cancels transient tasks if no others are left.
      #
      # @param timeout [Numeric, nil] seconds
      # @return [Boolean] whether there are tasks
      def run_once(timeout = nil) # rubocop:disable Naming/PredicateMethod -- as in Async
        tasks.cancel if tasks.finished?
        return false unless tasks.children?

        Context.in_nonblocking_fiber { sleep([timeout, MOMENT].compact.min) }
        true
      end

      # {run} returns, and the tasks go on. Any thread may call this.
      def interrupt = tasks.interrupt

      # Waits for the tasks' ends. {Reactors#new}'s scheduler cancels them, as Async's reactor does.
      #
      # @return [void]
      def close
        terminate_tasks
        super.tap { tasks.close }
      end

      # @return [Boolean] whether {close} was called
      def closed? = @tasks ? @tasks.closed? : false

      # Async calls this in a forked child. On a scheduler that {Async.default!} has made, a child that begins in a
      # blocking fiber begins without a scheduler, as on Async's: there `Async { }` makes one, and waits for its tasks.
      #
      # @return [void]
      def process_fork
        Fiber.set_scheduler(nil) if reactor? && Fiber.current.blocking?
      end

      # (see SchedulerClose#scheduler_close)
      def scheduler_close
        terminate_tasks
        finish_later unless runs_block?
        super
        raise_failure
      end

      # The block of {Heddle.run} has ended, whose end waits for the tasks.
      #
      # @param error [Exception, nil] the block's
      # @return [Exception, nil] the block's error, or what has ended a task and is no StandardError
      def block_ended(error)
        end_tasks { |tasks| tasks.cancel if error }
        finish_later
        error || own_tasks&.take_failure
      end

      # `Kernel#sleep`, which is public in Async's reactor.
      def sleep(...) = super # rubocop:disable Lint/UselessMethodDefinition -- it is private elsewhere

      # From now on it is closed like Async's reactor.
      #
      # @return [self]
      def as_reactor
        @tasks = Root.new(self, is_reactor: true)
        self
      end

      # @return [Root] the tasks that run on this scheduler
      def tasks
        own_tasks || Heddle.without_preemption do
          own_tasks || (@tasks = @tasks ? @tasks.without_tasks : Root.new(self))
        end
      end

      # To Async the scheduler is the root of the tree of tasks: what it asks of that, {#tasks} answers.
      #
      # @param child [::Async::Task] a new task
      # @return [void]
      def add_child(child) = tasks.add_child(child)

      # A task has begun, and has come to its first wait.
      #
      # @return [void]
      def task_begun = (finish_later if @finishes_later)

      # @param child [::Async::Task] a task that has ended
      # @return [void]
      def remove_child(child) = tasks.remove_child(child)

      # @return [::Async::Children]
      def children = tasks.children

      # @return [Boolean]
      def children? = tasks.children?

      # @yieldparam node [::Async::Node]
      # @return [Object]
      def traverse(&) = tasks.traverse(&)

      # Prints the tree of tasks.
      #
      # @return [void]
      def print_hierarchy(...) = tasks.print_hierarchy(...)

      # @return [Scheduler]
      def root = self

      # @return [nil]
      def parent = nil

      # @return [Boolean]
      def transient? = false

      # @return [Boolean] whether there are transient tasks only
      def finished? = tasks.finished?

      # @return [Boolean] whether there are no tasks
      def cancelled? = !tasks.children?

      # Cancels all tasks.
      #
      # @return [void]
      def cancel(...) = tasks.cancel(...)
      alias stop cancel
      alias stopped? cancelled?

      # @return [Boolean] whether all tasks have ended
      def terminate # rubocop:disable Naming/PredicateMethod -- as in Async
        tasks.cancel
        !tasks.children?
      end

      # @return [Float] how busy the thread is, from 0.0 to 1.0
      def load = (@load ||= Load.new).value

      # The fiber continues, and the calling one when the scheduler comes to it. A semaphore of Async is released so: if
      # other fibers ran first, one of them could take what the fiber has waited for, and so write before it.
      def resume(fiber, *)
        push(fiber)
        Native.run_next(self, fiber) if fiber.is_a?(Fiber)
        self.yield
      end

      # The calling fiber waits until it is passed to {#push}, {#resume} or {#raise}.
      def transfer = block(TRANSFER, nil)

      # A fiber that has called {#transfer}, a fiber that has not begun, or another object with `transfer`, continues
      # when the scheduler comes to it: not before the calling fiber waits, unless ticks preempt that.
      def push(target)
        if !target.is_a?(Fiber)
          start_later { target.transfer if target.alive? }
        elsif target.alive? && target.backtrace(0, 1).empty?
          # It has not begun.
          start_later { target.resume }
        elsif Heddle.state(target) == :waiting
          unblock(TRANSFER, target)
        end
        self
      end

      # Raises in the fiber. Without a fiber it is `Kernel#raise`.
      def raise(*arguments, **)
        return super unless arguments.first.is_a?(Fiber)

        fiber, *rest = arguments
        fiber.raise(*rest, **)
      end

      # Runs the block with a time limit.
      #
      # @param duration [Numeric, nil] seconds; nil is no limit
      # @yieldparam timeout [::Async::Timeout] the limit, which can be moved
      def with_timeout(duration, exception = ::Async::TimeoutError, message = "execution expired", &block)
        takes_none = block.arity.zero?
        return takes_none ? yield : yield(nil) unless duration

        duration = [duration, 0].max
        return timeout_after(duration, exception, message) { yield } if takes_none # rubocop:disable Style/ExplicitBlockArgument -- it would get the seconds

        limited = lambda do |deadline|
          timeout = ::Async::Timeout.new(Timers, Timers::Timer.new(deadline))
          yield timeout
        ensure
          timeout&.cancel!
        end
        Deadline.new(self, duration, exception.exception(message)).limit(limited)
      end

      # @!method start
      #   Starts a fiber as `Fiber.schedule` does, whatever a library has made of that.
      #
      #   @return [Fiber]
      Scheduler.alias_method :start, :fiber

      private

      # A fiber whose starter has run for a tick may continue before that, also after {Heddle.snooze}. So it waits until
      # the starter has continued, even if that is by an exception.
      def start_later
        fiber = nil
        start do
          fiber = Fiber.current
          transfer
          yield
        end
      ensure
        unblock(TRANSFER, fiber) if fiber
      end

      # @return [Root, nil] the tasks, unless there were none, or a fork has left them in the parent
      def own_tasks
        tasks = @tasks
        tasks if tasks && tasks.generation == Native.generation
      end

      # Whether {Async.default!} has made it.
      def reactor? = @tasks&.reactor?

      def terminate_tasks
        own_tasks&.terminate if reactor?
      end

      # Waits for the tasks' ends, also if {run} is interrupted meanwhile.
      #
      # @yieldparam tasks [Root] before that, if there are tasks
      def end_tasks
        return unless (tasks = own_tasks)

        yield tasks
        nil until tasks.finished_all?
      end

      # The program has ended, and the scheduler waits for all fibers. From now on a fiber ends transient tasks when no
      # others are left.
      def finish_later
        @finishes_later = true
        return if reactor? || @is_finishing || !own_tasks&.children?

        @is_finishing = true
        start do
          end_tasks { nil }
        ensure
          @is_finishing = false
        end
      end

      def raise_failure
        failure = own_tasks&.take_failure
        raise failure if failure
      end
    end
    private_constant :Protocol

    # Makes a Heddle scheduler where {Async.default!} was called, and no selector or worker pool of Async's is wanted.
    module Reactors
      # @raise [RuntimeError] on a thread that a Heddle scheduler serves, which Async's reactor would close
      def new(*arguments, **options)
        if Fiber.scheduler.is_a?(Scheduler)
          raise "Async::Reactor.new: this thread's scheduler is a #{Fiber.scheduler.class}, on which tasks run: call " \
                "Async { } in it"
        end
        default = Async.default
        return super unless default && arguments.empty? && options.empty?

        Scheduler.new(**default).as_reactor.tap { |scheduler| Fiber.set_scheduler(scheduler) }
      end
    end
    private_constant :Reactors
  end
end
