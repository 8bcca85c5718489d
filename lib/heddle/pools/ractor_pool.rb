# frozen_string_literal: true

require "etc"

module Heddle
  # Runs blocks that compute on several processors, each in a Ractor of its own, and limits how many run at a time. The
  # fiber that awaits them lets the thread's other fibers run.
  #
  # A block sees only its arguments, as Ruby requires. There is no fiber scheduler in it, because native extensions with
  # a scheduler may be used in the main Ractor only. So a block cannot wait for other jobs. It cannot be stopped once it
  # has started, because Ruby cannot stop a Ractor.
  #
  # It needs Ruby 4.0: the Ractors of 3.3 and 3.4 hang when several threads wait for several of them. Ruby 4.0 warns on
  # `$stderr` that Ractors are experimental, and reports a block's error there.
  #
  # @example
  #   pool = Heddle::RactorPool.new(ractors: 4)
  #   Heddle.run do
  #     pool.await_all(*parts.map { |part| pool.go(part) { |text| text.split.tally } })
  #   end
  class RactorPool
    # @param ractors [Integer] the highest number of Ractors at a time; the default is the number of processors
    # @raise [ArgumentError] if the number is less than one
    # @raise [TypeError] if the number is not an Integer
    # @raise [NotImplementedError] before Ruby 4.0
    def initialize(ractors: Etc.nprocessors)
      unless Ractor.method_defined?(:value)
        raise NotImplementedError,
              "Heddle::RactorPool needs Ruby 4.0; Ruby #{RUBY_VERSION} hangs when several threads wait for Ractors"
      end

      @threads = ThreadPool.new(threads: ArgumentChecks.count(ractors, "Heddle::RactorPool.new: ractors"))
    end

    # @return [Integer] the highest number of Ractors at a time
    def size = @threads.size

    # Runs the block in a Ractor, when fewer than {#size} run. The caller continues.
    #
    # @param arguments [Array] passed to the block; Ruby copies what Ractors cannot share
    # @yield [*arguments] the computation; it must not use variables from outside the block
    # @return [ThreadPool::Job]
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed
    # @example
    #   job = pool.go(30) { |n| fibonacci = ->(i) { i < 2 ? i : fibonacci[i - 1] + fibonacci[i - 2] }; fibonacci[n] }
    def go(*arguments, &block)
      ArgumentChecks.block(block, "Heddle::RactorPool#go")
      @threads.go { compute(arguments, block) }
    end

    # Waits for several jobs.
    #
    # @param jobs [Array<ThreadPool::Job>]
    # @return [Array<Object>] their values, in order
    # @raise the error of the first job that failed, when all started jobs have ended; the others never start
    # @raise [ArgumentError] if a block uses variables from outside
    # @example
    #   tallies = pool.await_all(*jobs)
    def await_all(*jobs)
      jobs.map(&:await)
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      Heddle.shield { end_rest(jobs) }
      raise
    end

    # Refuses further jobs, and waits until all jobs have ended.
    #
    # @return [self]
    def close
      @threads.close
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} ractors=#{size}>"
    end

    private

    def compute(arguments, block)
      Ractor.new(*arguments, &block).value
    rescue Ractor::RemoteError => e
      # The explicit cause prevents that `raise` makes the two errors each other's cause.
      (e.cause || e).then { |error| raise error, cause: error.cause }
    end

    def end_rest(jobs)
      jobs.each do |job|
        job.terminate.await
      rescue StandardError
        # `await` raises the first error only.
      end
    end
  end
end
