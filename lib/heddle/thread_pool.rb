# frozen_string_literal: true

module Heddle
  # Threads for work that would block a scheduler's thread: C extensions that wait by themselves, and what computes
  # without the GVL. The fiber that hands in work waits for it, while others go on.
  #
  # A job may hand in jobs, and wait for them: what nobody has begun is then done by who waits. So waiting for jobs
  # never comes to a standstill, with one thread even, as long as no two wait for each other.
  #
  # Any fiber of any thread may use a pool. For futures, chains and schedules see concurrent-ruby's executors; with
  # them it needs as many threads as there are jobs that wait for jobs.
  #
  # @example
  #   pool = Heddle::ThreadPool.new(4)
  #   Heddle.run { rows = pool.process { database.query("select 1") } }
  class ThreadPool
    DEFAULT_SIZE = 4

    # A pool of its own for whoever does not want to make one.
    #
    # @yield the work
    # @return [Object] the block's value
    # @raise (see #process)
    def self.process(&)
      (@shared ||= new).process(&)
    end

    # @param size [Integer] how many threads there are at most; they are started as they are needed
    # @raise [ArgumentError, TypeError] if it is less than one, or no Integer
    def initialize(size = DEFAULT_SIZE)
      @size = Checks.count(size, "Heddle::ThreadPool.new")
      begin_anew
    end

    # @return [Integer]
    attr_reader :size

    # Has the block done in a thread of the pool, and waits for it. In a job of this pool it is done at once, by the
    # same thread.
    #
    # Who is cancelled while waiting takes the work back if it has not begun; else it goes on, and its result is lost.
    #
    # @yield the work
    # @return [Object] the block's value
    # @raise the block's error
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed
    def process(&block)
      Checks.block(block, "Heddle::ThreadPool#process")
      job = cast(&block)
      begin
        job.await
      ensure
        job.withdraw
      end
    end

    # Has the block done in a thread of the pool, and doesn't wait for it.
    #
    # @yield the work
    # @return [Job] {Job#await} waits for it
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed
    def cast(&block)
      Checks.block(block, "Heddle::ThreadPool#cast")
      begin_anew if inherited?
      Job.new(self, block).tap do |job|
        @jobs.push(job)
        @guard.synchronize { start_thread if @threads.count(&:alive?) < @size && @jobs.size > @jobs.num_waiting }
      end
    end

    # @return [Boolean] whether there is work that nobody has begun, or a thread at work
    def busy?
      !@jobs.empty? || @jobs.num_waiting < @threads.size
    end

    # Takes no more work, has that done which has been handed in, and waits for it.
    #
    # @return [self]
    def close
      @jobs.close
      @threads.each(&:join) unless inherited?
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size} threads=#{@threads.size} queued=#{@jobs.size}>"
    end

    # @api private
    # @return [Boolean] whether this is one of the pool's threads
    def current?
      @threads.include?(Thread.current)
    end

    private

    # Also in a forked child: the threads stayed in the parent.
    def begin_anew
      @generation = Scheduler.__send__(:generation)
      @guard = Guard.new
      @jobs = Thread::Queue.new
      @threads = []
    end

    def inherited?
      @generation != Scheduler.__send__(:generation)
    end

    def start_thread
      thread = Thread.new do
        while (job = @jobs.pop)
          job.run
        end
      end
      thread.name = "Heddle::ThreadPool"
      @threads << thread
    end
  end
end

require_relative "thread_pool/job"
