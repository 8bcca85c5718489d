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
    { steps: 0 } => [ArgumentError, "steps: must be an Integer of at least 1, not 0"],
    { depth: 0 } => [ArgumentError, "depth: must be an Integer of at least 1, not 0"],
    { preemptions: -1 } => [ArgumentError, "preemptions: must be an Integer of at least 0, not -1"],
    { strategy: :best } => [ArgumentError, "strategy: must be :random, :pct or :exhaustive, not :best"],
    { strategy: :exhaustive, seed: 1 } => [ArgumentError, "strategy: :exhaustive has no seeds: replay a schedule"],
    { schedule: "1>2" } => [ArgumentError, "schedule: \"1>2\" is no schedule: a report prints it, as in 0.7>2,2.3>0"],
    { schedule: 7 } => [TypeError, "schedule must be a String, as a report prints it, not 7"],
    { paths: "lib" } => [TypeError, "paths: must be an Array of Strings, not \"lib\""],
    { trace: 5 } => [TypeError, "trace: must be a path, as a String or a Pathname, not 5"],
    { times: 3 } => [ArgumentError, "there is no option times:, but runs:, strategy:"],
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

  it "raises ArgumentError for a HEDDLE_SEED that is no number" do
    message = in_child do
      ENV["HEDDLE_SEED"] = "first"
      Heddle::Testing.explore { nil }
    rescue ArgumentError => e
      e.message
    end

    expect(message).to start_with("Heddle::Testing.explore: HEDDLE_SEED must be an Integer")
  end
end
