# frozen_string_literal: true

require "timeout"

module Ecosystem
  # The checks of one library. Each method returns what was observed; {Verdict} judges it.
  class Checks
    # The number of tasks that wait at once.
    TASKS = 8
    # Seconds that a wait of `waits` lasts.
    WAIT = 0.2
    # Seconds that a wait lasts which is ended from outside.
    LONG = 4
    # Seconds after which it is ended.
    LIMIT = 0.1
    # Seconds until a task counts as hanging.
    HANGS = 12

    def initialize(library, tasks)
      @library = library
      @tasks = tasks
    end

    def works
      _, outcome = attempt { @library.works(@library.connect) }
      outcome.pop
    end

    # How long one wait takes, how long many at once, and how late a sleeper of 10 ms is meanwhile.
    def waits
      clients = Array.new(TASKS) { connected }
      single = seconds { @library.wait(clients.first, WAIT) }
      late = nil
      together = seconds { late = lateness { in_tasks(clients) { |client| @library.wait(client, WAIT) } } }
      { "single" => single, "together" => together, "late" => late }
    end

    def timeout
      client = connected
      took = nil
      _, outcome = attempt do
        took = seconds { Timeout.timeout(LIMIT) { @library.wait(client, LONG) } }
      end
      result = nil
      took = seconds { result = outcome.pop(timeout: HANGS) }
      ended(result, took, client)
    end

    def kill
      client = connected
      task, outcome = attempt { @library.wait(client, LONG) }
      sleep(LIMIT)
      result = nil
      took = seconds do
        task.kill
        result = outcome.pop(timeout: HANGS)
      end
      ended(result, took, client)
    end

    def dies
      clients = Array.new(3) { connected }
      outcomes = clients.map { |client| attempt { @library.wait(client, LONG) }.last }
      sleep(LIMIT)
      clients.each { |client| @library.die(client) }
      results = outcomes.map { |outcome| outcome.pop(timeout: HANGS) }
      { "results" => results.map { |result| describe(result) }.tally, "after" => after(clients.first) }
    end

    private

    def connected
      client = @library.connect
      raise "the first answer of the server is wrong" if @library.respond_to?(:usable?) && !@library.usable?(client)

      client
    end

    # Runs the block in a task. Returns the task, and a queue with what became of the block.
    def attempt
      outcome = Queue.new
      task = @tasks.start do
        result = { "value" => yield }
      rescue StandardError, Timeout::ExitException => e
        result = { "error" => e.class.name, "message" => e.message[0, 200], "at" => e.backtrace&.first(3) }
      ensure
        outcome.push(result || { "killed" => true })
      end
      [task, outcome]
    end

    def in_tasks(items)
      outcomes = items.map { |item| attempt { yield item }.last }
      errors = outcomes.filter_map { |outcome| outcome.pop["error"] }
      raise errors.inspect if errors.any?
    end

    # What the client, and a new one, answer after one of its calls was ended.
    def ended(result, took, client)
      { "ended" => describe(result), "took" => took, "after" => after(client), "new client" => after(:new) }
    end

    def after(client)
      _, outcome = attempt { @library.usable?(client == :new ? @library.connect : client) }
      describe(outcome.pop(timeout: HANGS), true => "usable", false => "a wrong answer", nil => "a wrong answer")
    end

    def describe(result, values = {})
      return "hangs" unless result
      return "killed" if result["killed"]

      result["error"] || values.fetch(result["value"], "an answer")
    end

    # The highest number of seconds that a sleep of 10 ms is late while the block runs.
    def lateness
      most = 0
      stop = false
      _, outcome = attempt do
        most = [most, seconds { sleep(0.01) } - 0.01].max until stop
      end
      begin
        yield
      ensure
        stop = true
      end
      outcome.pop
      most
    end

    def seconds
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end
  end
end
