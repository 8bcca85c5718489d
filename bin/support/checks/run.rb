# frozen_string_literal: true

require "etc"
require "fileutils"
require_relative "children"
require_relative "summary"

module Checks
  # Runs the parts of a plan, several side by side, and says how that goes.
  class Run
    LOGS = "tmp/test"
    # Seconds between two lines about what runs.
    HEARTBEAT = 15
    STEP = 0.1
    # Lines of the log of a part that has failed.
    LAST_LINES = 100

    Running = Struct.new(:part, :started)

    def initialize(plan, started: now)
      @plan = plan
      @started = started
      @waiting = plan.parts.dup
      @running = {}
      @results = []
      @children = Children.new
    end

    # @return [Integer] the exit status
    def run
      FileUtils.rm_rf(LOGS)
      FileUtils.mkdir_p(LOGS)
      say(Summary.opening(@plan))
      %w[INT TERM HUP].each { |name| trap(name) { @interrupted = name } }
      finish
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def finish
      step until @interrupted || (@waiting.empty? && @running.empty?)
      interrupt if @interrupted
      left_behind = @children.left_behind
      puts(summary = Summary.new(@plan, @results, @waiting, seconds: now - @started, left_behind:))
      @interrupted ? 128 + Signal.list.fetch(@interrupted) : summary.status
    end

    def interrupt
      say("SIG#{@interrupted}: ending #{@running.size} parts")
      @children.stop_all
      @running.each_value { |running| over(running, :interrupted) }
    end

    def step
      @running.each { |pid, running| look_after(pid, running) }
      start_what_fits
      tell_what_runs if now - (@told || @started) > HEARTBEAT
      sleep(STEP)
    end

    def look_after(pid, running)
      if (status = @children.status(pid))
        @running.delete(pid)
        over(running, status.success? ? :passed : :failed, status)
      elsif now - running.started > running.part.limit
        say("#{running.part.name} still runs after #{running.part.limit} s: ending it")
        @children.stop(pid)
      end
    end

    def over(running, status, detail = nil)
      result = Result.new(running.part, status, now - running.started)
      @results << result
      say("#{status} #{running.part.name} (#{result.seconds.round} s)", result.closing_lines.map { |line| "  #{line}" })
      say(result.last_lines(LAST_LINES), "#{running.part.name}: #{detail}") if status == :failed
    end

    # In their order: a part that needs many CPUs is not passed by for ever.
    def start_what_fits
      drop_what_cannot_run
      over = @results.map { |result| result.part.name }
      @waiting.select { |part| (part.after - over).empty? }.each do |part|
        break unless fits?(part)

        start(part)
      end
    end

    def drop_what_cannot_run
      bad = @results.reject(&:passed?).map { |result| result.part.name }
      @waiting.dup.each do |part|
        missing = part.after & bad
        drop(part, missing) if missing.any?
      end
    end

    def fits?(part)
      taken = @running.each_value.sum { |running| running.part.cpus }
      taken.zero? || taken + part.cpus <= Etc.nprocessors + 0.01
    end

    def drop(part, failed)
      @waiting.delete(part)
      @results << Result.new(part, :dropped, 0)
      say("not run: #{part.name}, because these have not passed: #{failed.join("; ")}")
    end

    def start(part)
      @waiting.delete(part)
      pid = @children.start(part.command, part.environment, part.name, part.log)
      @running[pid] = Running.new(part, now)
      say("started #{part.name}")
    end

    def tell_what_runs
      @told = now
      names = @running.each_value.map { |running| Result.new(running.part).progress }
      say("running: #{names.join("; ")}; #{@waiting.size} parts to come")
    end

    def say(*lines)
      head = format("[%<seconds>4d s] ", seconds: now - @started)
      lines.flatten.each_with_index { |line, index| puts "#{index.zero? ? head : " " * head.size}#{line}" }
    end
  end
end
