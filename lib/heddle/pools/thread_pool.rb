# frozen_string_literal: true

require_relative "thread_pool/job"

module Heddle
  # Threads for work that would block a scheduler's thread: C extensions that wait without the scheduler, and
  # computation without the GVL. The calling fiber waits for the result, while the thread's other fibers run. The
  # interface is that of Polyphony's ThreadPool.
  #
  # Each call waits for its result. For several at a time, make a fiber for each, which is awaited, named, stopped and
  # whose error is raised as that of any fiber. For futures, chains and schedules see concurrent-ruby's executors.
  #
  # Any fiber of any thread may use a pool, the threads of the pool as well: they run the block at once.
  #
  # @example
  #   pool = Heddle::ThreadPool.new(threads: 4)
  #   Heddle.run { rows = pool.process { database.query("select 1") } }
  # @example Several at a time
  #   rows = Heddle.map(queries) { |query| pool.process { database.query(query) } }
  class ThreadPool
    # The number of threads unless the program says otherwise.
    DEFAULT_SIZE = 4
    # While a forked child makes new threads for a pool.
    MAKING = Guard.new
    private_constant :MAKING

    @shared = PerProcess.new { new }

    # Runs the block in a pool that the whole process shares.
    #
    # @yield the work
    # @return [Object] the block's value
    # @raise (see #process)
    # @example
    #   rows = Heddle::ThreadPool.process { database.query("select 1") }
    def self.process(&) = @shared.get.process(&)

    # @param threads [Integer] the highest number of threads; they are started as they are needed
    # @raise [ArgumentError] if the number is less than one
    # @raise [TypeError] if the number is not an Integer
    # @example
    #   Heddle::ThreadPool.new(threads: 2)
    def initialize(threads: DEFAULT_SIZE)
      @size = ArgumentChecks.count(threads, "Heddle::ThreadPool.new: threads")
      reset
    end

    # @return [Integer] the highest number of threads
    attr_reader :size

    # Runs the block in a thread of the pool, and waits for it. In a job of this pool it runs at once, in the same
    # thread.
    #
    # If the calling fiber is cancelled while it waits, a block that has not started never starts. A block that has
    # started continues, and its value, or its error, is lost: the fiber has an exception of its own.
    #
    # @yield the work
    # @return [Object] the block's value
    # @raise the block's error
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed
    # @example
    #   rows = pool.process { database.query("select 1") }
    def process(&block)
      ArgumentChecks.block(block, "Heddle::ThreadPool#process")
      return yield if current?

      job = start(WorkContext.capture, [], block)
      begin
        job.await
      ensure
        job.terminate
      end
    end

    # @api private
    # Starts a job, which may have another context than {#process} gives it.
    #
    # @param context [WorkContext]
    # @return [Job]
    def start(context, arguments, block)
      reset_after_fork
      Job.new(context, arguments, block).tap do |job|
        @guard.synchronize do
          raise ClosedQueueError, "Heddle::ThreadPool#process: the pool is closed" if @jobs.closed?

          @jobs.push(job)
          @workers.start if @workers.size < @size && @jobs.size > @jobs.num_waiting
        end
      end
    end

    # Refuses further jobs, and waits until all jobs have ended.
    #
    # @return [self]
    # @raise [ThreadError] in a job of this pool
    def close
      reset_after_fork
      raise ThreadError, "Heddle::ThreadPool#close: a job can't wait for the end of its own pool" if current?

      @jobs.close
      @workers.join
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size} threads=#{@workers.size} queued=#{@jobs.size}>"
    end

    # @api private
    # @return [Boolean] whether the current thread is one of the pool's
    def current?
      @workers.current?
    end

    private

    # In a forked child there are new threads, because threads do not survive a fork.
    def reset_after_fork
      return if @generation == Native.generation

      MAKING.synchronize { reset(closed: @jobs.closed?) unless @generation == Native.generation }
    end

    def reset(closed: false)
      @guard = Guard.new
      @jobs = jobs = Thread::Queue.new
      @jobs.close if closed
      @workers = Workers.new(@guard, "Heddle::ThreadPool") { run_jobs(jobs) }
      # Last: until then, the child's other threads wait in reset_after_fork.
      @generation = Native.generation
    end

    def run_jobs(jobs)
      while (job = jobs.pop)
        job.run
      end
    ensure
      # The thread is being killed, perhaps before the job has begun.
      job&.lose
    end
  end
end
