# frozen_string_literal: true

require "etc"

module Heddle
  # Blocks that compute, each in a Ractor of its own, so many at a time. The fiber that awaits them lets others go on.
  #
  # It is what {Pool} is over threads, as far as Ruby's Ractors go. A block sees nothing but its arguments, as Ruby has
  # it. It has no fiber scheduler (neither Heddle's nor another one's extension may be used but in the main Ractor), so
  # a job waits for no others, and it can't be stopped once it has begun: Ruby has no way to do that.
  #
  # It takes Ruby 4.0. The Ractors of 3.3 and 3.4 hang when several threads wait for several of them. Ruby 4.0 calls
  # them experimental, and says so on `$stderr`, where it also reports a block's error.
  #
  # @example
  #   pool = Heddle::RactorPool.new(ractors: 4)
  #   Heddle.run do
  #     parts.each { |part| pool.go(part) { |text| text.split.tally } }
  #     pool.await
  #   end
  class RactorPool
    # @param ractors [Integer] how many at a time; as many as there are processors, unless told otherwise
    # @raise [ArgumentError, TypeError] for a number less than one, or no Integer
    # @raise [NotImplementedError] before Ruby 4.0
    def initialize(ractors: Etc.nprocessors)
      unless Ractor.method_defined?(:value)
        raise NotImplementedError,
              "Heddle::RactorPool needs Ruby 4.0; Ruby #{RUBY_VERSION} hangs when several threads wait for Ractors"
      end

      @threads = ThreadPool.new(Checks.count(ractors, "Heddle::RactorPool.new: ractors"))
      @guard = Guard.new
      @jobs = []
    end

    # @return [Integer] how many blocks run at a time
    def size = @threads.size

    # Starts a Ractor for the block, when there is room.
    #
    # @param arguments [Array] what the block is given; Ruby copies what can't be shared
    # @yield what is to be computed, seeing nothing of what is outside
    # @return [ThreadPool::Job]
    # @raise [ArgumentError] without a block
    # @raise [ClosedQueueError] if the pool is closed
    # @example
    #   job = pool.go(30) { |n| fibonacci = ->(i) { i < 2 ? i : fibonacci[i - 1] + fibonacci[i - 2] }; fibonacci[n] }
    def go(*arguments, &block)
      Checks.block(block, "Heddle::RactorPool#go")
      job = @threads.cast { compute(arguments, block) }
      @guard.synchronize { @jobs << job }
      job
    end

    # Waits for jobs: those that are given, else all that nobody has awaited.
    #
    # @param jobs [Array<ThreadPool::Job>]
    # @return [Array] their values, in order
    # @raise the error of the first of them that failed, when those have ended that had begun; the others never begin
    # @raise [ArgumentError] if a block sees what is outside
    def await(*jobs)
      jobs = @guard.synchronize { @jobs.dup } if jobs.empty?
      @guard.synchronize { @jobs -= jobs }
      jobs.map(&:await)
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      Heddle.shield { end_rest(jobs) }
      raise
    end

    # Takes no more jobs, and waits for those that there are.
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
      # Raised by hand, as `raise` would make the two each other's cause.
      (e.cause || e).then { |error| raise error, cause: error.cause }
    end

    def end_rest(jobs)
      jobs.each do |job|
        job.withdraw
        job.await
      rescue StandardError
        # The first one is raised.
      end
    end
  end
end
