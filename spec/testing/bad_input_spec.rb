# frozen_string_literal: true

require "heddle/testing"

RSpec.describe "Heddle::Testing.explore" do
  highest = (2**64) - 1

  {
    { seed: "x" } => [ArgumentError, "seed must be an Integer from 0 to #{highest}, not \"x\""],
    { seed: -1 } => [ArgumentError, "seed must be an Integer from 0 to #{highest}, not -1"],
    { seed: 1.5 } => [TypeError, "seed must be an Integer from 0 to #{highest}, not 1.5"],
    { runs: 0 } => [ArgumentError, "runs: must be an Integer of at least 1, not 0"],
    { runs: "many" } => [TypeError, "runs: must be an Integer of at least 1, not \"many\""],
    { seconds: -1 } => [ArgumentError, "seconds: seconds must be finite and not negative, not -1"],
    { seconds: "5" } => [TypeError, "seconds: seconds must be an Integer, a Float or a Rational, not \"5\""],
    { steps: 0 } => [ArgumentError, "steps: must be an Integer of at least 1, not 0"],
    { depth: 0 } => [ArgumentError, "depth: must be an Integer from 1 to 1000, not 0"],
    { preemptions: -1 } => [ArgumentError, "preemptions: must be an Integer of at least 0, not -1"],
    { strategy: :best } => [ArgumentError, "strategy: must be :random, :pct or :exhaustive, not :best"],
    { strategy: :exhaustive, seed: 1 } => [ArgumentError, "strategy: :exhaustive has no seeds: replay a schedule"],
    { schedule: "1>2" } => [ArgumentError, "schedule: \"1>2\" is no schedule: a report prints it, as in 0.7>2,2.3>0"],
    { schedule: 7 } => [TypeError, "schedule must be a String, as a report prints it, not 7"],
    { paths: "lib" } => [TypeError, "paths: must be an Array of Strings, not \"lib\""],
    { trace: 5 } => [TypeError, "trace: must be a path, as a String or a Pathname, not 5"],
    { keep: 5 } => [TypeError, "keep: must be a path, as a String or a Pathname, not 5"],
    { depth: 1_001 } => [ArgumentError, "depth: must be an Integer from 1 to 1000, not 1001"],
    { depth: 2**32 } => [ArgumentError, "depth: must be an Integer from 1 to 1000, not 4294967296"],
    { idle: 10**30 } => [ArgumentError, "idle: must be seconds from 0 to 86400, not 1000000000000000000000000000000"],
    { paths: ["lib", "/missing"] } => [ArgumentError, "paths: there is no file or folder \"/missing\": give those"],
    { seed: 5, schedule: "none" } => [ArgumentError, "seed: 5 and schedule: \"none\" name a schedule each: give one"],
    { times: 3 } => [ArgumentError, "there is no option times:, but runs:, seconds:, strategy:"],
    { limits: 1 } => [TypeError, "limits: must be true or false, not 1"],
    { limits: true, clock: :real } => [ArgumentError, "limits: true needs clock: :virtual, not clock: :real"],
    { detect: %i[lock_order bugs] } => [ArgumentError, "detect: must be of :lock_order, :races, not :bugs"],
    { schedule: "x:none" } => [ArgumentError, "schedule: \"x:none\" is no schedule"],
    { backend: :fast } => [ArgumentError, "backend"]
  }.each do |options, (error, message)|
    it "raises #{error} for #{options}" do
      expect { Heddle::Testing.explore(**options) { nil } }.to raise_error(error, /#{Regexp.escape(message)}/)
    end
  end

  it "raises ArgumentError without a block" do
    expect { Heddle::Testing.explore }.to raise_error(ArgumentError, "Heddle::Testing.explore needs a block")
  end

  it "raises RuntimeError where the thread has a scheduler" do
    program = -> { Heddle.run { Heddle::Testing.explore { nil } } }

    expect(&program).to raise_error(RuntimeError, /this thread has a scheduler already: call it outside of Heddle\.run/)
  end

  it "raises RuntimeError within itself" do
    program = -> { Heddle::Testing.explore(runs: 1) { Heddle::Testing.explore { nil } } }

    expect(&program).to raise_error(Heddle::Testing::Failure, /this thread has a scheduler already/)
  end

  {
    "HEDDLE_SEED" => ["first", 'HEDDLE_SEED must be an Integer from 0 to 18446744073709551615, not "first"'],
    "HEDDLE_SCHEDULE" => ["\xFF", 'HEDDLE_SCHEDULE: "\xFF" is no schedule: a report prints it'],
    "HEDDLE_EXPLORE" => ["\xFF", 'HEDDLE_EXPLORE must be an Integer of at least 1, not "\xFF"']
  }.each do |variable, (value, expected)|
    it "raises ArgumentError for a #{variable} that is #{value.dump}" do
      message = in_child do
        ENV[variable] = value
        Heddle::Testing.explore { nil }
      rescue ArgumentError => e
        e.message
      end

      expect(message).to start_with("Heddle::Testing.explore: #{expected}")
    end
  end

  it "raises ArgumentError for a virtual clock with an idle: of more than a day" do
    expect { Heddle::Testing.run(idle: 1e12) { nil } }
      .to raise_error(ArgumentError, /Testing\.run: idle: must be seconds from 0 to 86400, not 1000000000000\.0/)
  end
end
