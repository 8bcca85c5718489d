# frozen_string_literal: true

require "etc"

module Heddle
  # Many fibers on several threads, each thread with a scheduler of its own. A job that hasn't begun is taken by
  # whichever thread has time for it; then it stays on that thread, as Ruby's fibers do. A job that waits, for other
  # jobs, too, keeps no thread from working, so jobs may wait for jobs to any depth on a single thread.
  #
  # The jobs are a tree, as fibers are: those that a job starts are its children. When it ends they are told to end, and
  # an error that one of them doesn't handle is raised in its parent.
  #
  # What a job has started is remembered until it is awaited or the job ends; so await now and then what is started
  # outside of jobs.
  #
  # Ruby's threads take turns in running Ruby code. Several threads help where they wait or work without the lock.
  #
  # @example
  #   pool = Heddle::Pool.new(threads: 2)
  #   load_model = ->(name) { pool.go { mesh(name) }; pool.go { texture(name) }; pool.await }
  #   models.each { |name| pool.go(name, &load_model) }
  #   pool.await
  #   pool.close
  class Pool
    # @param threads [Integer] how many; as many as there are processors, unless told otherwise
    # @param options [Hash] for each thread's scheduler; see {Scheduler#initialize}
    # @raise [ArgumentError, TypeError] for a number less than one, or no Integer
    def initialize(threads: Etc.nprocessors, **options)
      @size = Checks.count(threads, "Heddle::Pool.new: threads")
      # What is wrong with them is to be known here, and not in a thread.
      Scheduler.new(**options) unless options.empty?
      @options = options
      begin_anew
    end

    # @return [Integer] how many threads there are
    attr_reader :size

    # @api private
    attr_reader :guard, :backlog

    # Starts a job: a fiber on one of the threads.
    #
    # @param arguments [Array] what the block is given
    # @yield the work
    # @return [Job]
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed, for all but its own jobs
    # @example
    #   job = pool.go { fetch(url) }
    #   pool.await(job) # => [the page]
    def go(*arguments, &block)
      Checks.block(block, "Heddle::Pool#go")
      begin_anew if inherited?
      parent = Job.current(self)
      raise ClosedQueueError, "the pool is closed" if closed? && !parent

      Job.new(self, parent, arguments, block).tap do |job|
        @backlog.push(job) { siblings(parent)[job] = true }
      end
    end

    # Waits for jobs: those that are given, else all that the current job has started and nobody has awaited. Outside of
    # the pool's jobs these are all that were started outside.
    #
    # @param jobs [Array<Job>]
    # @return [Array] their values, in order; nil for those that were told to end
    # @raise the first error of any of them, when the others have been told to end and have done so
    # @raise [TypeError] for what is no job of this pool
    # @raise [FiberError] for the job that calls
    def await(*jobs)
      parent = Job.current(self)
      jobs.each { |job| expect_job(job, parent) }
      jobs = @guard.synchronize { siblings(parent).keys }.reject(&:seen?) if jobs.empty?
      Awaiting.new(self, parent, jobs).call
    end

    # Tells all jobs to end, running their `ensure`, and waits for it.
    #
    # @return [self]
    def stop
      Heddle.shield { Awaiting.new(self, nil, @guard.synchronize { @roots.keys }).stop }
      self
    end

    # Takes no more jobs from outside, waits until all have ended, and ends the threads.
    #
    # @return [self]
    # @raise the first error that nobody has awaited
    # @raise [FiberError] in a job of this pool
    def close
      return self if inherited?
      raise FiberError, "Heddle::Pool#close: a job can't wait for its own pool's end" if Job.current(self)

      @backlog.close
      begin
        await
      ensure
        # Who is cancelled while jobs go on doesn't wait for the threads, either.
        @threads.each(&:join) if @backlog.unfinished.zero?
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
    # Nobody waits for the job any longer, or needs to. To be called within the guard.
    def forget(job)
      siblings(job.parent).delete(job)
    end

    private

    # Also in a forked child: the threads stayed in the parent.
    def begin_anew
      @generation = Scheduler.__send__(:generation)
      @guard = Guard.new
      @backlog = Backlog.new(@guard)
      @roots = {}
      @threads = Array.new(@size) { start_thread }
    end

    def inherited?
      @generation != Scheduler.__send__(:generation)
    end

    def siblings(parent)
      parent ? parent.children : @roots
    end

    def start_thread
      thread = Thread.new do
        Heddle.run(**@options) { work }
      end
      thread.name = "Heddle::Pool"
      thread
    end

    # One fiber of each thread takes jobs, and then lets those go on that it has taken.
    def work
      while (job = @backlog.take)
        job.start
        Heddle.snooze
      end
    end

    def expect_job(job, current)
      raise TypeError, "Heddle::Pool#await: #{job.inspect} is not a job of this pool" unless
        job.is_a?(Job) && job.pool.equal?(self)
      raise FiberError, "Heddle::Pool#await: #{job.inspect} can't await itself" if job.equal?(current)
    end
  end
end

require_relative "pool/backlog"
require_relative "pool/job"
require_relative "pool/awaiting"
