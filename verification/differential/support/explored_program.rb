# frozen_string_literal: true

require "json"
require "heddle"
require "heddle/testing"
require_relative "program"

# One program with one backend, in a process of its own.
class ExploredProgram
  # In a process that explores, programs say things to their run.
  module Said
    class << self
      # @return [String] what the run has said
      attr_accessor :text
    end

    # (see Program#say)
    def say(*things)
      Said.text << things.map { |thing| "#{thing.is_a?(String) ? thing : thing.inspect}\n" }.join
    end
  end

  # Where time is virtual, all others wait when it passes.
  module Settled
    # (see Program#settle)
    def settle = sleep(0.000000001) && true
  end

  PROGRAMS = File.expand_path("../programs", __dir__)
  # These look at times. Their clock is virtual, so that the times are certain.
  TIMED = %r{\Atimeouts/}
  # Seconds after which a process that has not ended is killed.
  LIMIT = 60

  # What a schedule has come to that is not the outcome of plain threads.
  class Different < StandardError; end

  # @return [Integer] how many schedules have run
  attr_reader :runs
  # @return [String, nil] the failure
  attr_reader :failure

  def initialize(name, backend, expected)
    @name = name
    @backend = backend
    @expected = expected
    @runs = 0
  end

  # @param seeds [Enumerable<Integer>] at least one of them is tried
  # @param seconds [Float] how long
  def explore(seeds, seconds)
    result, sink = IO.pipe
    pid = fork do
      result.close
      sink.write(JSON.generate(in_own_folder { attempt(seeds, now + seconds) }))
    ensure
      exit!(0)
    end
    sink.close
    await(Process.detach(pid), result)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def await(process, result)
    text = Thread.new { result.read }.join(LIMIT)&.value
    Process.kill(:KILL, process.pid) unless text
    status = process.value
    outcome = JSON.parse(text) unless text.to_s.empty?
    @runs, @failure = outcome || [0, "#{text ? status : "not over after #{LIMIT} s"}: #{command}"]
  end

  def in_own_folder(&)
    # A program's constants and methods are defined again in each run.
    $VERBOSE = nil
    $stdin.reopen(File::NULL)
    Object.prepend(Said)
    Object.prepend(Settled) if timed?
    Program.options = {}
    Dir.mktmpdir("heddle-explored") { |folder| Dir.chdir(folder, &) }
  end

  # @return [Array(Integer, String)] how many schedules have run, and the failure, if there is one
  def attempt(seeds, deadline)
    runs = 0
    seeds.each do |seed|
      break if runs.positive? && now > deadline

      Heddle::Testing.explore_test(path, -> { command }, options(seed)) { play }
      runs += 1
    end
    [runs, nil]
  rescue Exception => e # rubocop:disable Lint/RescueException -- whatever the program raises
    [runs, e.is_a?(Heddle::Testing::Failure) ? e.message : e.full_message(highlight: false)]
  end

  def path = File.join(PROGRAMS, @name)

  def timed? = TIMED.match?(@name)

  def options(seed)
    { seed:, backend: @backend.to_sym, paths: [path], steps: 1_000_000, clock: timed? ? :virtual : :real }
  end

  # @return [Array<String>] its words
  def command
    ["env", "HEDDLE_BACKEND=#{@backend}", "ruby", "-Ilib", "verification/differential/explored.rb", @name]
  end

  def play
    Dir.each_child(".") { |file| FileUtils.rm_rf(file) }
    Said.text = +""
    load(path)
    raise Different, "#{@name} says:\n#{Said.text}\non threads:\n#{@expected}" if Said.text != @expected
  end
end
