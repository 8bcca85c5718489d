# frozen_string_literal: true

require_relative "support/session"
require_relative "support/table"
require_relative "support/throughput_page"
require_relative "throughput_catalogue"

# `rake bench`: every contestant in every workload, in turn, for some rounds. An example is one measurement; it fails if
# the workload's sums are wrong or a fiber never ended. No example fails by a figure.
session = Session.new("throughput", ThroughputCatalogue::CASES, rounds: 5)
session.call_roll

RSpec.describe "Throughput" do
  session.each do |bench, round, contestant|
    it "#{bench.title}: #{contestant.title}, round #{round + 1} of #{session.rounds}" do
      expect(skip_if_left_out(session.measure(bench, contestant))).to be_sound
    end
  end

  after(:all) { report(session, ThroughputPage) }
end
