# frozen_string_literal: true

require "fileutils"
require "json"
require "time"
require_relative "../contestants"
require_relative "machine"
require_relative "../report/results"
require_relative "runner"

# One run of a catalogue: it finds the contestants that are installed, measures them in alternation, and writes the
# results.
#
# Rounds are the outer loop of each case, contestants the inner one, and every round begins with another contestant. So
# what slows the machine down for a while slows all contestants down, and none always follows the same one.
class Session
  FOLDER = File.expand_path("../../tmp/benchmarks", __dir__)

  attr_reader :results, :rounds, :name

  def initialize(name, cases, rounds:, runner: Runner.new)
    @name = name
    @rounds = Integer(ENV.fetch("ROUNDS", rounds))
    @runner = runner
    @cases = cases.select { |bench| bench.selected?(ENV.fetch("BENCH", "").split(",")) }
    @wanted = ENV.fetch("CONTESTANTS", "").split(",")
    @results = Results.new(@cases)
    @calibrated = {}
    abort "BENCH=#{ENV.fetch("BENCH", nil)} names none of: #{cases.map(&:name).join(", ")}" if @cases.empty?
  end

  # Tries to load each contestant, and prints those that are left out, and whether the machine is idle.
  def find_contestants
    @max_gap = Machine.print_max_gap
    names = @cases.flat_map(&:contestants).uniq
    names.each do |name|
      contestant = Contestants.find(name)
      answer = wanted?(contestant) ? @runner.measure(contestant) : { not_installed: "not named in CONTESTANTS" }
      @results.versions[name] = answer[:version]
      reason = answer[:not_installed] || answer[:failed]
      @results.missing[name] = reason if reason
    end
    @results.missing.each { |name, reason| puts "left out: #{Contestants.find(name).title}: #{reason}" }
  end

  # Yields every case, round and contestant in the order in which they are to be measured.
  def each(&)
    @cases.each do |bench|
      present = bench.contestants.reject { |name| @results.missing.key?(name) }.map { |name| Contestants.find(name) }
      @rounds.times { |round| present.rotate(round).each { |contestant| yield bench, round, contestant } }
    end
  end

  # Measures once those parameters of the workloads that the catalogue leaves nil.
  def calibrate(workload)
    @calibrated = @runner.measure(Contestants.find("plain"), workload:)
    abort "could not calibrate: #{@calibrated}" if @calibrated.key?(:failed)
  end

  def measure(bench, contestant)
    parameters = bench.parameters.to_h { |name, value| [name, value.nil? ? @calibrated.fetch(name) : value] }
    result = @runner.measure(contestant, workload: bench.workload, parameters:, traced: bench.traced)
    @results.add(bench, contestant, result)
    result
  end

  def about
    { when: Time.now.utc.iso8601, rounds: @rounds, scale: ENV.fetch("BENCH_SCALE", "1"), calibrated: @calibrated,
      load_average: File.exist?("/proc/loadavg") ? File.read("/proc/loadavg").split.first(3).join(" ") : "unknown",
      max_gap: @max_gap, versions: @results.versions.compact, left_out: @results.missing, **Machine.describe }
  end

  # Writes the JSON file and the page; returns their paths.
  def write(page)
    FileUtils.mkdir_p(FOLDER)
    paths = ["#{FOLDER}/#{@name}.json", "#{FOLDER}/#{@name}.html"]
    File.write(paths.first, JSON.pretty_generate(about:, cases: @results.to_h))
    File.write(paths.last, page)
    paths
  end

  private

  # A prefix is enough: `heddle` selects all contestants of Heddle. CPU time is reported relative to plain, so plain is
  # always measured.
  def wanted?(contestant)
    @wanted.empty? || contestant.name == "plain" || @wanted.any? { |prefix| contestant.name.start_with?(prefix) }
  end
end
