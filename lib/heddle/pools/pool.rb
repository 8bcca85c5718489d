# frozen_string_literal: true

require "etc"
require_relative "pool/backlog"
require_relative "pool/job"
require_relative "pool/job_wait"

module Heddle
  # Runs jobs, which are fibers, on several threads, each with a scheduler of its own. A job that has not started is
  # taken by the first thread that has time for it. Then it stays on that thread, as Ruby's fibers do. A job that waits
  # leaves its thread to other jobs, so jobs may wait for jobs to any depth, even on a single thread. `go` is named
  # after Go's statement.
  #
  # The jobs form a tree, as fibers do. The jobs that a job starts are its children. When it ends, they are stopped,
  # and an error that one of them does not rescue is raised in its parent.
  #
  # The pool does not keep jobs that have ended: a job's value is there as long as the program keeps the job. Of the
  # errors of jobs that were started outside of jobs, and that are not awaited, the pool keeps the first one. The next
  # {#wait} or {#close} raises it.
  #
  # If a thread is killed, its jobs end, and another thread takes its place.
  #
  # Ruby runs Ruby code in one thread at a time. Several threads help if they wait, or work without the GVL.
  #
  # @example
  #   pool = Heddle::Pool.new(threads: 2)
  #   load_model = ->(name) { pool.go { mesh(name) }; pool.go { texture(name) }; pool.wait }
  #   models.each { |name| pool.go(name, &load_model) }
  #   pool.wait
  #   pool.close
  class Pool
    # While a forked child makes new threads for a pool.
    RESETTING = Guard.new
    private_constant :RESETTING

    # @param threads [Integer] the number of threads; the default is the number of processors
    # @param options [Hash] for each thread's scheduler; see {Scheduler#initialize}
    # @raise [ArgumentError] if the number is less than one, or for an invalid option
    # @raise [TypeError] if the number is not an Integer
    # @example
    #   Heddle::Pool.new(threads: 4, backend: :poll)
    def initialize(threads: Etc.nprocessors, **options)
      @size = ArgumentChecks.count(threads, "Heddle::Pool.new: threads")
      # Raises for invalid options here, and not in the threads.
      ArgumentChecks.scheduler_options(options)
      @options = options
      reset
    end

    # @return [Integer] the number of threads
    attr_reader :size

    # @api private
    attr_reader :guard, :backlog

    # Starts a job: a fiber on one of the threads. The caller continues.
    #
    # @param arguments [Array] passed to the block, keywords as well
    # @yield [*arguments] the work
    # @return [Job]
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed; jobs of the pool may still call it
    # @example
    #   job = pool.go { fetch(url) }
    #   job.await # => the page
    ruby2_keywords def go(*arguments, &block)
      ArgumentChecks.block(block, "Heddle::Pool#go")
      reset_after_fork
      parent = Job.current(self)
      raise ClosedQueueError, "Heddle::Pool#go: the pool is closed" if closed? && !parent

      Job.new(self, parent, arguments, block).tap do |job|
        @backlog.push(job) { siblings(parent)[job] = true }
      end
    end

    # Waits for several jobs.
    #
    # @param jobs [Array<Job>]
    # @return [Array<Object>] their values, in order; nil for a job that was stopped
    # @raise the first error that ends one of them. The others are stopped first, and have ended when it is raised.
    # @raise (see Job#await)
    # @example
    #   pages = pool.await_all(*urls.map { |url| pool.go { fetch(url) } })
    def await_all(*jobs)
      reset_after_fork
      parent = Job.current(self)
      jobs.each { |job| expect_job(job, parent) }
      JobWait.new(self, parent, jobs).call
    end

    # Waits until no job is left: in a job, of its children; outside of the pool's jobs, of all that were started
    # outside.
    #
    # @return [self]
    # @raise the first error that ends one of them, or has ended one that was not awaited. The others are stopped
    #   first, and have ended when it is raised.
    # @example
    #   urls.each { |url| pool.go { fetch(url) } }
    #   pool.wait
    def wait
      reset_after_fork
      parent = Job.current(self)
      # Raises the error of a child that has ended.
      Context.scheduler_if_any&.then { |scheduler| Native.raise_deferred(scheduler) } if parent
      jobs = @guard.synchronize { siblings(parent).keys + [(@failed unless parent)].compact }
      JobWait.new(self, parent, jobs).call
      self
    end

    # Stops all jobs, running their `ensure`, and waits for their end.
    #
    # @return [self]
    def stop
      reset_after_fork
      Heddle.shield { JobWait.new(self, nil, @guard.synchronize { @roots.keys }).stop }
      self
    end

    # Refuses further jobs from outside, waits until all jobs have ended, and ends the threads.
    #
    # @return [self]
    # @raise (see wait)
    # @raise [FiberError] in a job of this pool
    def close
      reset_after_fork
      raise FiberError, "Heddle::Pool#close: a job can't wait for the end of its own pool" if Job.current(self)

      @backlog.close
      begin
        wait
      ensure
        # If the calling fiber is cancelled while jobs run, it does not wait for the threads.
        @workers.join if @backlog.unfinished.zero?
      end
      self
    end

    # @return [Boolean]
    def closed? = @backlog.closed?

    # @return [String]
    def inspect
      "#<#{self.class} threads=#{size} unfinished=#{@backlog.unfinished}#{" closed" if closed?}>"
    end

    # @api private
    # The job has ended. Call it within the guard.
    #
    # @param keep [Boolean] whether the job has failed, and is not awaited. If it has no parent, which gets the error,
    #   the pool keeps the first such job.
    def forget(job, keep:)
      siblings(job.parent).delete(job)
      @failed ||= job if keep && !job.parent
    end

    # @api private
    # The jobs have been awaited.
    def awaited(jobs)
      @guard.synchronize { @failed = nil if jobs.include?(@failed) }
    end

    private

    # In a forked child there are new threads, because threads do not survive a fork.
    def reset_after_fork
      return if @generation == Native.generation

      RESETTING.synchronize { reset(closed: closed?) unless @generation == Native.generation }
    end

    def reset(closed: false)
      @guard = Guard.new
      @backlog = backlog = Backlog.new(@guard)
      @roots = {}
      @failed = nil
      @workers = Workers.new(@guard, "Heddle::Pool") { Heddle.run(**@options) { start_jobs(backlog) } }
      closed ? @backlog.close : @guard.synchronize { @size.times { @workers.start } }
      # Last: until then, the child's other threads wait in reset_after_fork.
      @generation = Native.generation
    end

    def siblings(parent)
      parent ? parent.children : @roots
    end

    # One fiber of each thread takes jobs. After each it lets the jobs run that it has started.
    def start_jobs(backlog)
      # A job that has been taken must be started, even if the thread is being killed.
      Heddle.snooze while Heddle.without_preemption { backlog.take&.start }
    end

    def expect_job(job, current)
      raise TypeError, "Heddle::Pool#await_all: #{job.inspect} is not a job of this pool" unless
        job.is_a?(Job) && job.pool.equal?(self)
      raise FiberError, "Heddle::Pool::Job#await: #{job.inspect} can't await itself" if job.equal?(current)
    end
  end
end
