# frozen_string_literal: true

module Ecosystem
  # Judges what a check observed in fibers, by comparison with what it observed on plain threads.
  #
  # A verdict is `:good`, `:same` (not good, but threads are no better), `:bad`, or `:broken` (the check itself fails on
  # threads), with a reason unless it is good.
  class Verdict
    COLUMNS = ["works", "waits at once", "10 ms sleeper", "timeout", "kill", "server dies"].freeze
    # Those that judge nothing but times.
    TIMES = ["waits at once", "10 ms sleeper"].freeze

    # Which check each column is about.
    CHECKS = { "works" => "works", "waits at once" => "waits", "10 ms sleeper" => "waits", "timeout" => "timeout",
               "kill" => "kill", "server dies" => "dies" }.freeze

    # Seconds that a sleeper may be late.
    LATE = 0.05
    # Seconds between the end of a limit, or a kill, and the end of the call.
    PROMPT = 0.4

    attr_reader :kind, :reason

    # @param times [Boolean] whether to judge how long something takes, which a busy machine makes longer
    # @param excused [Boolean] whether the library's file says that the check may fail on threads, too
    def initialize(column, observed, threads, times:, excused: false)
      @excused = excused
      @times = times
      @measured = observed != "hangs" && !observed["error"]
      @column = column
      @reason = fault(observed, threads)
      @kind = @reason ? kind_of_fault(threads) : :good
    end

    # @return [Boolean] whether the verdict is only about a time
    def about_time? = TIMES.include?(@column) && @measured

    private

    def kind_of_fault(threads)
      return :broken if !@excused && (threads == "hangs" || threads["error"])

      fault(threads, threads) ? :same : :bad
    end

    def fault(observed, threads)
      return "hangs" if observed == "hangs"
      return "#{observed["error"]}: #{observed["message"]} (#{observed["at"]&.first})" if observed["error"]

      __send__(@column.tr(" ", "_").sub("10", "the"), observed, threads)
    end

    def works(observed, threads)
      return if observed["value"] == threads["value"]

      "#{observed["value"].inspect} instead of #{threads["value"].inspect}"
    end

    def waits_at_once(observed, _threads)
      return if observed["together"] < (2 * observed["single"]) + 0.1

      "#{Checks::TASKS} waits take #{observed["together"].round(1)} s, one takes #{observed["single"].round(1)} s"
    end

    def the_ms_sleeper(observed, _threads)
      "late by up to #{observed["late"].round(2)} s" if observed["late"] > LATE
    end

    def timeout(observed, _threads) = after_end(observed, Checks::LIMIT)

    def kill(observed, _threads) = after_end(observed, 0)

    def after_end(observed, limit)
      return "the call hangs" if observed["ended"] == "hangs"
      return "the call is not ended" if observed["ended"] == "an answer"

      late = observed["took"] - limit
      return "the call ends #{late.round(1)} s late" if @times && late > PROMPT
      return "afterwards: #{observed["after"]}" if ["hangs", "a wrong answer"].include?(observed["after"])

      "a new client: #{observed["new client"]}" if observed["new client"] != "usable"
    end

    def server_dies(observed, _threads)
      return "#{observed["results"]["hangs"]} calls hang" if observed["results"]["hangs"]
      return "a call gets an answer" if observed["results"]["an answer"]

      "afterwards: #{observed["after"]}" if ["hangs", "usable", "a wrong answer"].include?(observed["after"])
    end
  end
end
