# frozen_string_literal: true

module Heddle # :nodoc:
  # The threads of a pool. A thread that is killed is replaced, so that its pool continues.
  class Workers
    @replaces = true

    class << self
      # At the end of the program Ruby kills all threads, and waits for those that they start.
      def stop_replacing
        @replaces = false
      end

      # @return [Boolean]
      def replaces? = @replaces
    end

    # @param guard [Guard] the pool's
    # @param name [String] the threads' name
    # @yield what each thread runs
    def initialize(guard, name, &work)
      @guard = guard
      @name = name
      @work = work
      @threads = []
    end

    # @return [Integer] the number of threads that have not ended
    def size
      @threads.count(&:alive?)
    end

    # @return [Boolean] whether the current thread is one of them
    def current?
      @threads.include?(Thread.current)
    end

    # Starts a thread. Call it within the guard.
    #
    # @return [void]
    def start
      @threads.select!(&:alive?)
      @threads << WorkContext.thread(@name) { run }
    end

    # Waits until all threads have ended.
    #
    # @raise the error that ended one of them
    def join
      while (thread = @guard.synchronize { @threads.find(&:alive?) || @threads.shift })
        thread.join
      end
    end

    private

    def run
      @work.call
      ended = true
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      ended = true
      raise
    ensure
      # Neither has happened: the thread is being killed.
      @guard.synchronize { start } if !ended && Workers.replaces?
    end
  end
  private_constant :Workers

  at_exit { Workers.stop_replacing }
end
