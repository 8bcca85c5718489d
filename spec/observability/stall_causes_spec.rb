# frozen_string_literal: true

RSpec.describe "The places of stalls" do
  let(:causes) { Heddle.const_get(:Stalls).const_get(:Causes).new }

  it "are reported at most every ten seconds each, with the number of stalls there" do
    counts = [["a.rb:1", 0], ["a.rb:1", 9.9], ["b.rb:1", 9.9], ["a.rb:1", 10], ["a.rb:1", 19.9]].map do |place, now|
      causes.count(place, now)
    end

    expect(counts).to eq [[1, true], [2, false], [1, true], [3, true], [4, false]]
  end

  it "are forgotten if there are too many, the first one first" do
    (0..1000).each { |number| causes.count("a.rb:#{number}", 0) }

    expect([causes.count("a.rb:1", 0), causes.count("a.rb:0", 0)]).to eq [[2, false], [1, true]]
  end
end
