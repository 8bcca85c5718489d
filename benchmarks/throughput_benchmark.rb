# frozen_string_literal: true

require_relative "run/session"
require_relative "report/table"
require_relative "report/throughput_page"
require_relative "catalogue/throughput"

# `rake bench`: every contestant in every workload, in alternation, for several rounds. An example is one measurement.
# It fails if the workload's sums are wrong or a fiber never ended. No example fails because of a figure.
session = Session.new("throughput", ThroughputCatalogue::CASES, rounds: 5)
session.find_contestants

RSpec.describe "Throughput" do
  session.each do |bench, round, contestant|
    it "#{bench.title}: #{contestant.title}, round #{round + 1} of #{session.rounds}" do
      expect(skip_if_left_out(session.measure(bench, contestant))).to be_sound
    end
  end

  after(:all) { report(session, ThroughputPage) }
end
