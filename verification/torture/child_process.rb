# frozen_string_literal: true

module Torture
  # A process in a process group of its own, with its output in a file. It is killed, with its group, when it makes no
  # progress for too long.
  class ChildProcess
    # The signal that asks a child for the backtraces of its threads and fibers. Neither Heddle, Ruby nor Ruby's tests
    # have a use for it.
    BACKTRACES = "XCPU"
    # Seconds for the backtraces.
    LAST_WORDS = 2
    # Seconds between two checks of the progress.
    INTERVAL = 0.1

    # Installs the handler for BACKTRACES. To be called in the child.
    def self.answer
      trap(BACKTRACES) do
        (Thread.list + ObjectSpace.each_object(Fiber).to_a).each do |subject|
          warn subject.inspect, *subject.backtrace&.map { |line| "    #{line}" }
        end
      end
    end

    # The child's environment. With Bundler, tests that start a Ruby would fail.
    def self.environment
      inherited = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
      inherited.merge("RUBY" => RbConfig.ruby)
    end

    # @param command [Array<String>]
    # @param log [String] the file for its output. Processes that a test has left behind could hold a pipe open.
    def initialize(command, log:, environment: self.class.environment)
      @log = log
      pid = spawn(environment, *command, unsetenv_others: true, pgroup: true, in: File::NULL, %i[out err] => log)
      @waiter = Process.detach(pid)
    end

    # Waits for the process to end.
    #
    # @param limit [Numeric] seconds that it may go without progress
    # @yieldreturn [Object] the state of the process: a change counts as progress
    # @return [Process::Status, nil] nil if it was killed
    def wait(limit)
      progress = deadline = nil
      until @waiter.join(INTERVAL)
        before = progress
        progress = yield if block_given?
        deadline = now + limit if deadline.nil? || progress != before
        return give_up if now > deadline
      end
      @waiter.value
    ensure
      kill_group
    end

    def output
      File.read(@log, encoding: "BINARY").force_encoding("UTF-8").scrub
    end

    private

    def give_up
      Process.kill(BACKTRACES, @waiter.pid)
      @waiter.join(LAST_WORDS)
      nil
    rescue Errno::ESRCH
      nil
    end

    def kill_group
      Process.kill(:KILL, -@waiter.pid)
    rescue Errno::ESRCH
      # The usual case: no process of the group is left.
    ensure
      @waiter.join
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
