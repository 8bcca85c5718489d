# frozen_string_literal: true

require_relative "catalogue/throughput"
require_relative "run/comparison"

# `rake bench:compare BASE=path`: Heddle from this tree and from another built checkout, in alternation, over the
# throughput cases. An example is one measurement, as in throughput_benchmark.rb.
comparison = Comparison.new(ENV.fetch("BASE") { abort "BASE must name a built checkout: rake bench:compare BASE=path" },
                            ThroughputCatalogue::CASES, rounds: 5)
comparison.find_contestants

RSpec.describe "Comparison of throughput" do
  comparison.each do |bench, round, contestant, tree|
    it "#{bench.title}: #{contestant.title}, #{tree}, round #{round + 1} of #{comparison.rounds}" do
      expect(skip_if_left_out(comparison.measure(bench, contestant, tree))).to be_sound
    end
  end

  after(:all) { puts "", comparison }
end
