# frozen_string_literal: true

require_relative "latency_catalogue"
require_relative "support/latency_page"
require_relative "support/session"
require_relative "support/table"

# `rake bench:latency`: how late sleepers and echoes are beside fibers that compute, for Heddle's tickers, the 2021
# article's technique, Async and threads. The work is measured out once at the beginning and is the same for everybody.
session = Session.new("latency", LatencyCatalogue::CASES, rounds: 3)
session.call_roll
session.calibrate("calibrate")

RSpec.describe "Latency beside fibers that compute" do
  session.each do |bench, round, contestant|
    it "#{bench.title}: #{contestant.title}, round #{round + 1} of #{session.rounds}" do
      expect(skip_if_left_out(session.measure(bench, contestant))).to be_sound
    end
  end

  after(:all) { report(session, LatencyPage) }
end
