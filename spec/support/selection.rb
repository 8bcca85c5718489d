# frozen_string_literal: true

require "zlib"

# Which examples a run takes. Without these variables, it takes all.
#
# `bin/test` runs one combination of Ruby, backend and ticker beside the other, and takes each promise once:
#
# | examples | run in `bin/test` |
# |---|---|
# | hooks/, io/, scheduler/, preemption/ | once per backend |
# | libraries/, slow/ | the first of each file, with the first combination, whose Ruby is likeliest to have libraries |
# | differential programs | on plain threads and as one contestant; programs are dealt out to all contestants |
# | all others | once |
#
# Where several combinations may run an example, its description decides: the same examples run in each run.
#
# | variable | meaning |
# |---|---|
# | `HEDDLE_COMBINATIONS` | the backends of all combinations, such as `io_uring poll` |
# | `HEDDLE_COMBINATION` | which of them this run is, from 0 |
# | `HEDDLE_TICKER` | the ticker of this combination: examples that are written for each ticker run with this one |
# | `HEDDLE_SLICE` | `1/2`: the first of two processes that share the examples of a run |
module Selection
  EVERY_BACKEND = %w[hooks io scheduler preemption].freeze
  SAMPLED = %w[libraries slow].freeze
  # The id, within its file, of the first example.
  FIRST = /\A1(:1)*\z/

  module_function

  def tickers = ENV.key?("HEDDLE_TICKER") ? [ENV["HEDDLE_TICKER"].to_sym] : %i[signal timerfd]

  # @param metadata [Hash] of an example
  def takes?(metadata)
    name = "#{metadata[:file_path]} #{metadata[:full_description]}"
    slice?(name) && (combinations.empty? || combination?(metadata, name))
  end

  # @return [Array<String>] what runs the differential programs beside plain threads. `loaded` is Heddle after a
  #   scheduler: it has no backend, so io_uring's runs leave it to poll's.
  def contestants(backends)
    backends.flat_map { |backend| [*("loaded" unless backend == "io_uring"), backend, "#{backend}-preempted"] }
  end

  def slice?(name)
    number, slices = ENV.fetch("HEDDLE_SLICE", "1/1").split("/").map { |part| Integer(part) }
    dealt((1..slices).to_a, "slice of #{name}") == number
  end

  def combination?(metadata, name)
    if (contestant, path = metadata[:program])
      contestant == dealt(contestants(combinations.uniq), path) && mine?(with_backend, name)
    elsif (folder = metadata[:file_path][%r{spec/(\w+)/}, 1]) && SAMPLED.include?(folder)
      FIRST.match?(metadata[:scoped_id]) && number.zero?
    else
      mine?(EVERY_BACKEND.include?(folder) ? with_backend : combinations.each_index.to_a, name)
    end
  end

  def mine?(numbers, name) = dealt(numbers, name) == number

  # @return [Array<Integer>] the combinations with this one's backend
  def with_backend = combinations.each_index.select { |other| combinations[other] == combinations[number] }

  def combinations = ENV.fetch("HEDDLE_COMBINATIONS", "").split

  def number = Integer(ENV.fetch("HEDDLE_COMBINATION"))

  def dealt(hands, name) = hands[Zlib.crc32(name) % hands.size]
end
