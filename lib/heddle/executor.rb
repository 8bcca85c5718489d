# frozen_string_literal: true

require "concurrent/errors"
require "concurrent/executor/executor_service"
require "concurrent/version"
require "heddle"

unless Heddle.supported?
  Heddle.const_get(:Extension).step_aside("there is no Heddle::Executor")
  return
end

Heddle.const_get(:AdapterPart).new(
  "concurrent-ruby", Concurrent::VERSION,
  right_with: "1.3.8",
  without: "Heddle::Executor cannot run tasks",
  uses: ["Concurrent::ExecutorService", "Concurrent::RejectedExecutionError", "Concurrent.global_logger()"]
).demand

require_relative "executor/error_log"
require_relative "executor/task_queue"
require_relative "executor/task_queues"

module Heddle
  # Runs concurrent-ruby's tasks on fibers: those of `Concurrent::Promises`, `Concurrent::Future` and all else that
  # takes an `executor:`. A task that waits costs a fiber instead of a thread. `require "heddle/executor"` loads it.
  #
  # Each task gets a fiber of its own, with a copy of the caller's fiber storage (`Fiber[]`). Which thread that fiber
  # belongs to depends on the fiber that calls {#post}:
  #
  # - A non-blocking fiber of a Heddle scheduler: the task runs on the same thread, beside the caller. It is not a child
  #   of the caller, nor in its scope ({Heddle.run}). The scheduler waits for the task before it closes.
  # - Any other fiber, and `on: :thread`: the task runs on a thread that belongs to the executor. It starts with the
  #   first such task, and its scheduler preempts fibers that compute.
  #
  # As in concurrent-ruby's pools, an error that ends a task is logged by `Concurrent.global_logger` and goes no
  # further: at the level DEBUG if it is a StandardError, else ERROR. Promises and futures keep the error themselves.
  #
  # An executor that is used in a forked child starts there without tasks, and works.
  #
  # @example
  #   executor = Heddle::Executor.new
  #   pages = urls.map { |url| Concurrent::Promises.future_on(executor, url) { |address| Net::HTTP.get(address) } }
  #   Concurrent::Promises.zip(*pages).value!
  class Executor
    include Concurrent::ExecutorService

    # The number of fibers for each thread unless the program says otherwise. Each fiber takes two of the 65,530 memory
    # mappings that Linux grants a process by default.
    DEFAULT_FIBERS = 10_000
    POLICIES = %i[abort discard caller_runs].freeze
    HOMES = %i[caller thread].freeze
    private_constant :POLICIES, :HOMES

    # @param fibers [Integer] how many tasks run at a time on one thread. Further tasks wait in a queue.
    # @param max_queue [Integer] how many tasks may wait in a thread's queue; 0 means any number
    # @param fallback_policy [:abort, :discard, :caller_runs] what {#post} does with a task if the queue is full, or
    #   after {#shutdown}: raise an error, return false, or run the task before it returns
    # @param on [:caller, :thread] `:thread` runs every task on the executor's own thread
    # @param name [String, nil] the executor's name, also that of its thread
    # @param options [Hash] for the scheduler of the executor's own thread; see {Scheduler#initialize}. The default is
    #   `preempt: :all`.
    # @raise [ArgumentError, TypeError] for a number that is not an Integer, or too small, and for an invalid option
    # @example At most 20 tasks at a time, and 100 that wait
    #   Heddle::Executor.new(fibers: 20, max_queue: 100, fallback_policy: :caller_runs)
    # rubocop:disable-next Metrics/ParameterLists -- keywords
    def initialize(fibers: DEFAULT_FIBERS, max_queue: 0, fallback_policy: :abort, on: :caller, name: nil, **options)
      @fibers = ArgumentChecks.count(fibers, "Heddle::Executor.new: fibers")
      @max_queue = ArgumentChecks.count(max_queue, "Heddle::Executor.new: max_queue", 0..)
      @fallback_policy = ArgumentChecks.one_of(fallback_policy, "Heddle::Executor.new: fallback_policy", POLICIES)
      @on = ArgumentChecks.one_of(on, "Heddle::Executor.new: on", HOMES)
      @name = name
      @options = { preempt: :all, **options }
      # Raises for invalid options here, and not in the thread.
      ArgumentChecks.scheduler_options(options)
      # Threads, and the fibers of other threads, do not survive a fork.
      @queues = PerProcess.new { TaskQueues.new(limit: fibers, max_queue:, name:, options: @options) }
      queues # Now, as a signal handler may ask for the executor's state.
    end

    # @return [Symbol] what happens to a task that cannot be queued
    attr_reader :fallback_policy
    # @return [Integer] how many tasks may wait in a thread's queue; 0 means any number
    attr_reader :max_queue
    # @return [String, nil]
    attr_reader :name

    # @return [Integer] how many tasks run at a time on one thread
    def max_length = @fibers

    # Starts a task, or queues it. The task does not run before this returns, except by `fallback_policy: :caller_runs`.
    #
    # @param arguments [Array] passed to the task
    # @yield [*arguments] the task
    # @return [Boolean] true; false if the task is discarded
    # @raise [ArgumentError] without a block
    # @raise [Concurrent::RejectedExecutionError] if the task cannot be queued, with `fallback_policy: :abort`
    # @raise [FiberError, NoMemoryError] if there is no memory for a first fiber
    # @example
    #   executor.post(user) { |recipient| Mailer.welcome(recipient) }
    def post(*arguments, &task)
      ArgumentChecks.block(task, "Heddle::Executor#post")
      # A promise does not take the application's context along; see {WorkContext}.
      work = WorkContext.carry_libraries(task)
      submit(work, arguments, Fiber.current.storage || {}) || fall_back { task.call(*arguments) }
    end

    # @api private
    # Starts a task that takes nothing along from the caller, such as a job.
    #
    # @return [Boolean] (see #post)
    # @raise (see #post)
    def post_detached(&task)
      submit(task, [], {}) ||
        fall_back { Fiber.new(storage: {}, blocking: Fiber.current.blocking?, &task).resume }
    end

    # @api private
    # Starts such a task in the place of the current one, which is about to end: also after {#shutdown}, and if the
    # queue is full.
    #
    # @return [Boolean] false after {#kill}, and if the current fiber runs no task of this executor
    def replace(&task) # rubocop:disable Naming/PredicateMethod -- it is an action
      !queues.replace([task, [], {}]).nil?
    end

    # @return [Boolean] whether {#post} can refuse a task for lack of room
    def can_overflow? = @max_queue.positive?

    # @return [false] tasks run concurrently
    def serialized? = false

    # Refuses further tasks. Those that run or wait in the queue are run to their end. Does not wait for that.
    #
    # @return [true]
    def shutdown # rubocop:disable Naming/PredicateMethod -- it is an action
      queues.shutdown
      true
    end

    # Refuses further tasks, forgets those in the queue, and tells the running ones to end; their `ensure` clauses run.
    # Does not wait for that. A task that computes ends at its next wait, or at once if it can be preempted.
    #
    # @return [true]
    def kill # rubocop:disable Naming/PredicateMethod -- it is an action
      queues.kill
      true
    end

    # Waits until all tasks have ended after {#shutdown} or {#kill}. Other fibers of this thread run meanwhile.
    #
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @return [Boolean] false after the timeout
    # @raise [ArgumentError, TypeError] for a timeout that is negative, infinite, or not a number
    # @example
    #   executor.shutdown
    #   executor.wait_for_termination(30) or executor.kill
    def wait_for_termination(timeout = nil)
      queues.wait(timeout)
    end

    # @return [Boolean] whether {#post} takes tasks
    def running? = queues.open?

    # @return [Boolean] whether {#shutdown} or {#kill} was called, and tasks have not ended yet
    def shuttingdown? = !running? && !shutdown?

    # @return [Boolean] whether {#shutdown} or {#kill} was called, and all tasks have ended
    def shutdown? = queues.terminated?

    # @return [Boolean] true: the executor's thread does not keep the process from ending
    def auto_terminate? = true

    # @return [Integer] how many tasks have begun and not ended
    def length = queues.running

    # @return [Integer] how many tasks wait in queues
    def queue_length = queues.waiting

    # @return [Integer] how many tasks were taken
    def scheduled_task_count = queues.scheduled

    # @return [Integer] how many tasks have ended, by whatever means
    def completed_task_count = queues.completed

    # @return [Integer] how many more tasks fit into the queue of the thread on which a task of the caller would run; -1
    #   means any number
    def remaining_capacity
      can_overflow? ? queues.room(home) : -1
    end

    # @return [String]
    def inspect
      state = { true => "running", false => "shutting down" }.fetch(running?) unless shutdown?
      "#<#{self.class}#{" #{name}" if name} #{state || "shut down"} running=#{length} queued=#{queue_length}>"
    end
    alias to_s inspect

    private

    def queues = @queues.get

    def submit(task, arguments, storage) # rubocop:disable Naming/PredicateMethod -- it is an action
      queue = queues.post(home, [task, arguments, storage])
      queue&.wake
      !queue.nil?
    end

    # The scheduler beside whose fibers a task of the caller runs.
    def home = (Fiber.current_scheduler if @on == :caller)

    def fall_back(&)
      case @fallback_policy
      when :abort
        state = running? ? "its queue is full (max_queue: #{@max_queue})" : "it has been shut down"
        raise Concurrent::RejectedExecutionError, "Heddle::Executor#post: #{state}"
      when :discard then false
      when :caller_runs then run_here(&)
      end
    end

    def run_here
      yield
      true
    rescue StandardError => e
      ErrorLog.debug(e)
      true
    end
  end
end
