# frozen_string_literal: true

require_relative "catalogue/latency"
require_relative "report/latency_page"
require_relative "run/session"
require_relative "report/table"

# `rake bench:latency`: how late sleepers and echoes are beside CPU-bound fibers, with Heddle's tickers, the 2021
# article's technique, Async, and threads with two time slices. The work is calibrated once at the beginning and is the
# same for all.
session = Session.new("latency", LatencyCatalogue::CASES, rounds: 3)
session.find_contestants
session.calibrate("calibrate")

RSpec.describe "Latency beside CPU-bound fibers" do
  session.each do |bench, round, contestant|
    it "#{bench.title}: #{contestant.title}, round #{round + 1} of #{session.rounds}" do
      expect(skip_if_left_out(session.measure(bench, contestant))).to be_sound
    end
  end

  after(:all) { report(session, LatencyPage) }
end
