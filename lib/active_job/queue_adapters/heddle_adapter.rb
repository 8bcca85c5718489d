# frozen_string_literal: true

require "active_job"
require "concurrent/scheduled_task"
require "securerandom"
require "heddle"

if Heddle.supported?
  require "heddle/executor"
  require "heddle/jobs/limited_queues"

  # They are not documented. Without them the adapter could run no job.
  on = Heddle.const_get(:AdapterPart).new(
    "activejob", ActiveJob::VERSION::STRING,
    right_with: "8.1.3",
    without: "Active Job's jobs run on threads, without `limits:`",
    uses: ["ActiveJob::Base.execute(_)", "ActiveJob::Base.around_perform()", "ActiveJob::Base#serialize()",
           "ActiveJob::Base#provider_job_id=(_)", "ActiveJob::QueueAdapters::AbstractAdapter#initialize()"]
  ).usable?
else
  Heddle.const_get(:Extension).step_aside("Active Job's jobs run on threads")
end
unless on
  require "heddle/jobs/threads_adapter"
  ActiveJob::QueueAdapters::HeddleAdapter = Heddle::Jobs::ThreadsAdapter
  return
end

module ActiveJob # :nodoc:
  module QueueAdapters # :nodoc:
    # Runs jobs in this process, on fibers of one thread. A job that waits for a database, a page or a timer keeps no
    # thread from other jobs, and a job that computes is preempted.
    #
    # The queue is in memory. At the end of the process, jobs that run or wait for a fiber are finished first, as far
    # as `drain:` allows. Jobs whose time (`wait_until:`) has not come are lost.
    #
    # With `require "heddle/rails"`, `config.active_job.queue_adapter = :heddle` selects it.
    #
    # @example
    #   config.active_job.queue_adapter = ActiveJob::QueueAdapters::HeddleAdapter.new(
    #     fibers: 200, limits: { "reports" => 2 }, drain: 10
    #   )
    class HeddleAdapter < AbstractAdapter
      # @param fibers [Integer] how many jobs run at a time; further jobs wait in the queue
      # @param limits [Hash{String, Symbol => Integer}] how many jobs of a queue run at a time
      # @param drain [Float, Integer, Rational] seconds that {#shutdown} waits for jobs before it stops them
      # @param thread_variables [:own, :shared] whether each job has thread variables (`Thread#thread_variable_get`) of
      #   its own, as it may expect of a thread, or all share those of the adapter's thread
      # @param ** [Hash] for the thread's scheduler; see {Heddle::Scheduler#initialize}. The default is
      #   `preempt: :all`.
      # @raise [ArgumentError, TypeError] for an invalid number or option
      def initialize(fibers: 100, limits: {}, drain: 25, thread_variables: :own, **)
        super()
        unless drain.is_a?(Numeric) && drain.finite? && !drain.negative?
          raise ArgumentError, "HeddleAdapter.new: drain must be a number of seconds, not #{drain.inspect}"
        end

        @drain = drain
        @thread_variables = UNIT.check_option(thread_variables, "HeddleAdapter.new")
        @executor = ::Heddle::Executor.new(fibers:, on: :thread, fallback_policy: :caller_runs, name: "heddle jobs", **)
        @queues = PER_PROCESS.new { ::Heddle::Jobs::LimitedQueues.new(@executor, limits) }
        queues # Now, as it raises for invalid limits.
        @delayed = Concurrent::AtomicFixnum.new
        @process = Process.pid
      end

      # Active Job calls it for `perform_later`. After {#shutdown} the job runs before this returns.
      #
      # @param job [ActiveJob::Base]
      # @return [void]
      def enqueue(job)
        submit(job.queue_name, data_of(job))
      end

      # Active Job calls it for `set(wait: …)` and `set(wait_until: …)`.
      #
      # @param job [ActiveJob::Base]
      # @param timestamp [Numeric] seconds since 1970
      # @return [void]
      def enqueue_at(job, timestamp)
        data = data_of(job)
        delay = timestamp - Time.now.to_f
        return submit(job.queue_name, data) unless delay.positive?

        drain_at_exit
        count_delayed
        Concurrent::ScheduledTask.execute(delay, executor: :immediate) do
          @delayed.decrement
          submit(job.queue_name, data) if @executor.running?
        end
      end

      # Refuses further jobs, and waits up to `drain:` seconds for the others. Then it stops them: their `ensure`
      # runs. Runs at the end of the process by itself.
      #
      # @param wait [Boolean] whether to wait
      # @return [Boolean] whether all jobs have ended by themselves
      def shutdown(wait: true)
        @executor.shutdown
        return @executor.shutdown? unless wait
        return true if @executor.wait_for_termination(@drain)

        report("#{@executor.length} jobs run after #{@drain} s, and are stopped; " \
               "#{@executor.queue_length + queues.waiting} that wait are lost")
        queues.clear
        @executor.kill
        @executor.wait_for_termination(ENSURE_TIME)
        false
      ensure
        lost = @process == Process.pid ? @delayed.value : 0
        report("#{lost} jobs whose time has not come are lost") if lost.positive?
      end

      # @return [Boolean] whether {#shutdown} was called; a job that can be continued later asks for it
      def stopping? = !@executor.running?

      # Seconds that jobs get for their `ensure`, after they were stopped. It is the default of `grace:`.
      ENSURE_TIME = 5
      UNIT = ::Heddle.const_get(:UnitOfWork)
      PER_PROCESS = ::Heddle.const_get(:PerProcess)
      private_constant :ENSURE_TIME, :UNIT, :PER_PROCESS

      private

      def queues = @queues.get

      # A job is serialized although it stays in this process: its arguments are copies, as with other adapters.
      def data_of(job)
        job.provider_job_id = SecureRandom.uuid
        job.serialize
      end

      # In a forked child there are none of its parent's.
      def count_delayed
        @delayed.value = 0 unless @process == Process.pid
        @process = Process.pid
        @delayed.increment
      end

      def submit(queue, data)
        drain_at_exit
        queues.post(queue) do
          UNIT.run_job(@thread_variables, log: method(:report)) do
            ::Heddle.annotate("#{data["job_class"]} #{data["job_id"]}") { Base.execute(data) }
          end
        end
      end

      # A forked child inherits the block, and has no jobs.
      def drain_at_exit
        return if @drains_at_exit

        @drains_at_exit = true
        at_exit { shutdown }
      end

      def report(message)
        Base.logger&.warn("[ActiveJob] HeddleAdapter: #{message}")
      end
    end
  end
end

# A job that runs on a fiber is a scope, within what `retry_on` and `rescue_from` see, and around all callbacks.
ActiveJob::Base.around_perform(prepend: true) { |_job, perform| Heddle.const_get(:UnitOfWork).in_scope(&perform) }
