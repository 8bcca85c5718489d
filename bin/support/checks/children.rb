# frozen_string_literal: true

require_relative "system_calls"

module Checks
  # The processes that bin/test has started, and all of theirs. Each part has a process group of its own.
  class Children
    # Seconds from the request to end to the kill.
    GRACE = 5
    # Seconds for processes to end after their part. What a part has really left does not end.
    LAST_GRACE = 20
    # A process whose part is over has the part's name here.
    MARK = "HEDDLE_TEST_PART"
    STEP = 0.05

    def initialize
      # By process id: how the process has ended, or nil. Only those that {start} has started: the kernel gives the
      # number of an orphan that has ended to a later process.
      @statuses = {}
      # So that a process whose parent has ended is still found among the descendants of this one.
      SystemCalls.adopts_orphans?
    end

    # @return [Integer] the process id
    def start(command, environment, name, log)
      pid = spawn({ **environment, MARK => name }, *command, in: File::NULL, %i[out err] => [log, "w"], pgroup: true)
      @statuses[pid] = nil
      pid
    end

    # @param pid [Integer] what {start} has returned
    # @return [Process::Status, nil] how the process has ended, if it has
    def status(pid)
      reap
      @statuses[pid]
    end

    # Ends a part that takes too long.
    def stop(pid)
      signal(:TERM, tree(pid))
      wait_until(GRACE) { status(pid) } || signal(:KILL, tree(pid))
    end

    # Ends everything.
    def stop_all
      signal(:TERM, tree(Process.pid))
      wait_until(GRACE) { nothing_left? }
      # A process that is killed may have started another one meanwhile.
      wait_until(GRACE) do
        signal(:KILL, tree(Process.pid))
        nothing_left?
      end
    end

    # Kills the processes that are still there when all parts are over.
    #
    # @return [Array<String>] these processes
    def left_behind
      wait_until(LAST_GRACE) { nothing_left? }
      left = tree(Process.pid)
      texts = left.filter_map { |pid| describe(pid) }
      stop_all
      texts
    end

    private

    # Orphans, too: they are this process's children.
    def reap
      while (ended = Process.wait2(-1, Process::WNOHANG))
        pid, status = ended
        @statuses[pid] = status if @statuses.key?(pid)
      end
    rescue Errno::ECHILD
      # None is left.
    end

    def nothing_left?
      reap
      tree(Process.pid).empty?
    end

    def wait_until(limit)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + limit
      until (value = yield)
        return if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep(STEP)
      end
      value
    end

    def signal(name, pids)
      pids.each do |pid|
        Process.kill(name, pid)
      rescue Errno::ESRCH
        # It has ended meanwhile.
      end
    end

    # @return [Array<Integer>] the descendants of a process; and that process, if it is not this one
    def tree(root)
      children = parents.group_by(&:last).transform_values { |pairs| pairs.map(&:first) }
      found = [root]
      found.each { |pid| found.concat(children.fetch(pid, [])) }
      found - [Process.pid]
    end

    # The parents of all processes, by Linux's list or by ps.
    def parents
      stats = Dir["/proc/[0-9]*/stat"]
      return `ps -A -o pid=,ppid=`.lines.map { |line| line.split.map(&:to_i) } if stats.empty?

      stats.filter_map do |file|
        pid, rest = File.read(file).split(" (", 2)
        [Integer(pid), Integer(rest[/.*\) \S (\d+)/m, 1])]
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end
    end

    def describe(pid)
      part = File.binread("/proc/#{pid}/environ")[/(?:\A|\0)#{MARK}=([^\0]*)/, 1]
      "#{pid} (#{part}): #{File.binread("/proc/#{pid}/cmdline").tr("\0", " ")[0, 200]}"
    rescue SystemCallError
      nil
    end
  end
end
