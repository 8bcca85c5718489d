# frozen_string_literal: true

require_relative "parts"
require_relative "system_calls"
require_relative "verification_parts"

module Checks
  # The parts of bin/test: the quick ones, or with --all every one.
  class Plan
    include Parts
    include VerificationParts

    SPECS_GEMFILE = "gemfiles/specs.gemfile"
    BACKENDS = %w[io_uring poll].freeze
    TICKERS = %w[timerfd signal].freeze
    # What --all adds, for the last lines of the quick run.
    ALL_ADDS = [
      "formatting, RuboCop, YARD and clippy; the core's own tests; the gems",
      "all examples with every Ruby, every backend and both tickers, once with disturbed threads",
      "all differential programs as all contestants; the examples whose subject is real time",
      "the differential programs, and Heddle's own operations, under explored schedules",
      "the models of waker, mailbox and worker pool",
      "the differential programs with each just-in-time compiler",
      "libraries against real servers", "Ruby's own tests inside fibers, and its tests of the scheduler interface",
      "the stress program for a minute, GC stress"
    ].freeze

    Combination = Data.define(:ruby, :backend, :ticker)

    attr_reader :rubies, :seed, :left_out

    # @param rubies [Hash{String => String}] paths by version
    # @param left_out [Hash{String => String}] reasons by what is left out
    def initialize(rubies, all:, seed:, left_out: {})
      @all = all
      @seed = seed
      @left_out = left_out
      @rubies = rubies.select { |version, ruby| bundled?(ruby, SPECS_GEMFILE) || missing_gems(version) }
      @first = @rubies.values.first
    end

    def all? = @all

    def parts
      @parts ||= [crates, *compile, *specs, *(complete if all?)].grep(Part)
    end

    # Beside each other: each Ruby, each backend and each ticker; with --all also the first Ruby, which has libraries,
    # with each backend.
    def combinations
      return each_once unless all?

      [each_once.first, *backends.map { |backend| Combination.new(rubies.keys.first, backend, nil) }, *each_once].uniq
    end

    def each_once
      count = [rubies.size, backends.size].max
      lists = [rubies.keys, backends, count == 1 || all? ? [nil] : TICKERS].map(&:cycle)
      Array.new(count) { Combination.new(*lists.map(&:next)) }
    end

    def tickers = combinations.map(&:ticker).uniq.then { |names| names == [nil] ? TICKERS : names }

    def backends
      return [ENV["HEDDLE_BACKEND"]] if ENV["HEDDLE_BACKEND"]
      return BACKENDS unless (refusal = SystemCalls.io_uring_refusal)

      leave_out("the backend io_uring", "the kernel refuses it: #{refusal}") || (BACKENDS - ["io_uring"])
    end

    private

    # What --all adds.
    def complete = [*lints, *rust, *packages, project, *timed, *verification]

    def leave_out(name, reason)
      @left_out[name] = reason
      nil
    end

    def missing_gems(version)
      leave_out("Ruby #{version}", "the gems of #{SPECS_GEMFILE} are not installed for it")
    end

    def bundled?(ruby, gemfile)
      system({ "BUNDLE_GEMFILE" => gemfile }, ruby, "-rbundler/setup", "-e", "", %i[out err] => File::NULL)
    end
  end
end
