# frozen_string_literal: true

require "zlib"

# Which examples a run takes. Without these variables, it takes all.
#
# `bin/test` runs combinations of a Ruby and a backend beside each other. Each folder says what its examples depend on,
# and so in which combinations they run:
#
# | examples of | run in `bin/test --all` | run in `bin/test` |
# |---|---|---|
# | hooks/, io/, scheduler/, preemption/, structured/, testing/ | with each Ruby, and each backend | once, ten of each |
# | libraries/ | with the first Ruby, which is likeliest to have libraries, and each backend | once, one of each file |
# | observability/, slow/ | with the first combination | once, ten and one of each file |
# | project/ | in a part of their own, with the gems that they need | no |
# | verification/async/ | no: `rake falcon` runs them, with source trees | no |
# | differential programs | as each contestant of a backend, with one Ruby | one of three, as one contestant |
#
# Examples that are tagged `:timed` have real time as their subject. They have a part of their own in `--all`, and do
# not run in `bin/test`. Where several combinations may run an example, or some of a file are left out, its description
# decides: the same examples run in each run.
#
# | variable | meaning |
# |---|---|
# | `HEDDLE_COMBINATIONS` | the Rubies and backends of all combinations, such as `3.3/io_uring 3.4/poll` |
# | `HEDDLE_COMBINATION` | which of them this run is, from 0 |
# | `HEDDLE_QUICK` | set for `bin/test`, not set for `--all` |
# | `HEDDLE_TIMED` | `only` or `none` of the examples with `:timed` |
# | `HEDDLE_TICKER` | the ticker of this combination: examples that are written for each ticker run with this one |
# | `HEDDLE_SLICE` | `1/2`: the first of two processes that share the examples of a run |
module Selection
  # What an example depends on, by its folder. The others run once.
  ON = {
    "hooks" => :each, "io" => :each, "scheduler" => :each, "preemption" => :each, "structured" => :each,
    "testing" => :each, "differential" => :each,
    "libraries" => :backend, "observability" => :first, "slow" => :first, "project" => :apart, "async" => :apart
  }.freeze
  # What libraries are needed for.
  FIRST = %w[libraries observability slow].freeze
  # How many examples of a file `bin/test` takes, by folder. The project's documents and tools are none of its users'.
  QUICK = Hash.new(10).merge("libraries" => 1, "slow" => 1, "project" => 0, "async" => 0).freeze
  # `bin/test` takes one of so many differential programs.
  PROGRAMS = 3
  # An object's address, or a path of the checkout: by these the choice would be another one in each run.
  PASSING = %r{0x\h{8}|#{Regexp.escape(File.expand_path("../..", __dir__))}/(?:lib|spec|verification)/}

  module_function

  def tickers = ENV.key?("HEDDLE_TICKER") ? [ENV["HEDDLE_TICKER"].to_sym] : %i[signal timerfd]

  # @param metadata [Hash] of an example; all files have been loaded
  # @raise [ArgumentError] for a description that is not the same in each run
  def takes?(metadata)
    description = metadata[:full_description]
    raise ArgumentError, "#{description}: describe this the same way in each run" if PASSING.match?(description)

    name = "#{metadata[:file_path]} #{description}"
    timed?(metadata) && slice?(name) && (combinations.empty? || combination?(metadata, name))
  end

  # @return [Array<String>] what runs the differential programs beside plain threads. `loaded` is Heddle after a
  #   scheduler: it has no backend, so io_uring's runs leave it to poll's.
  def contestants(backends)
    backends.flat_map { |backend| [*("loaded" unless backend == "io_uring"), backend, "#{backend}-preempted"] }
  end

  def timed?(metadata)
    case ENV.fetch("HEDDLE_TIMED", nil)
    when "only" then metadata[:timed]
    when "none" then !metadata[:timed]
    else true
    end
  end

  def slice?(name)
    number, slices = ENV.fetch("HEDDLE_SLICE", "1/1").split("/").map { |part| Integer(part) }
    dealt((1..slices).to_a, "slice of #{name}") == number
  end

  def combination?(metadata, name)
    folder = metadata[:file_path][%r{(?:spec|verification)/(\w+)/}, 1]
    return runs_on(folder).include?(number) unless ENV.key?("HEDDLE_QUICK")
    return quick_program?(*metadata[:program]) if metadata[:program]

    quick_on(folder, name) == number && rank(metadata) < QUICK[folder]
  end

  # @return [Array<Integer>] the combinations that run the folder's examples
  def runs_on(folder)
    case ON.fetch(folder)
    when :each then each_once
    when :backend then combinations.each_index.select { |other| ruby_of(other) == ruby_of(0) }
    when :first then [0]
    when :apart then []
    end
  end

  def quick_on(folder, name) = FIRST.include?(folder) ? 0 : dealt(combinations.each_index.to_a, name)

  def quick_program?(contestant, path)
    # Its folder and file: where the checkout is decides nothing.
    name = path.split("/").last(2).join("/")
    own = contestants([combinations[number].split("/").last])
    own.include?(contestant) && (Zlib.crc32(name) % PROGRAMS).zero? && contestant == dealt(contestants(backends), name)
  end

  # Combinations in which each Ruby and each backend appears.
  def each_once
    rubies = combinations.each_index.map { |index| ruby_of(index) }.uniq
    count = [rubies.size, backends.size].max
    pairs = Array.new(count) { |index| "#{rubies[index % rubies.size]}/#{backends[index % backends.size]}" }
    combinations.each_index.select { |index| pairs.include?(combinations[index]) }
  end

  # Which one of its file an example is, in an order that is the same in each run and mixes the rows of a table.
  def rank(metadata)
    @ranks ||= RSpec.world.all_examples.group_by { |example| example.metadata[:file_path] }.flat_map do |_, examples|
      order = examples.sort_by { |example| [Zlib.crc32(example.metadata[:full_description]), example.id] }
      order.each_with_index.map { |example, index| [example.id, index] }
    end.to_h
    @ranks.fetch("#{metadata[:rerun_file_path]}[#{metadata[:scoped_id]}]")
  end

  def ruby_of(index) = combinations[index].split("/").first

  def backends = combinations.map { |combination| combination.split("/").last }.uniq

  def combinations = ENV.fetch("HEDDLE_COMBINATIONS", "").split

  def number = Integer(ENV.fetch("HEDDLE_COMBINATION"))

  def dealt(hands, name) = hands[Zlib.crc32(name) % hands.size]
end
