# frozen_string_literal: true

RSpec.describe "Heddle::NameTotal" do
  let(:total_class) { Heddle.const_get(:NameTotal) }

  # `count` fibers had the name for a nanosecond each, and ran for a second each.
  def total(name, count, begun: 0.0)
    none = [[0, 0], 0.0, 0.0]
    total_class.of(name, begun, count.to_f, 0.0, { io: count.to_f }, 0, [[0, count, 0], count / 1e9, 1e-9], none)
  end

  def by_name(*totals) = totals.to_h { |total| [total.name, total] }

  def counted(totals) = totals.to_h { |each| [each.name, [each.ages.count, each.ran, each.waited.fetch(:io, 0.0)]] }

  def between(earlier, later) = counted(total_class.between(by_name(*earlier), by_name(*later)))

  describe ".between" do
    it "subtracts what the earlier reading has of a name" do
      expect(between([total("a", 2), total("other", 1)], [total("a", 5), total("other", 1)]))
        .to eq "a" => [3, 3.0, 3.0], "other" => [0, 0.0, 0.0]
    end

    it "has all of a name that is in the later reading only" do
      expect(between([], [total("a", 5)])).to eq "a" => [5, 5.0, 5.0]
    end

    it "does not count again for other what a replaced name had done" do
      expect(between([total("a", 2), total("other", 1)], [total("b", 7, begun: 9.0), total("other", 4)]))
        .to eq "b" => [7, 7.0, 7.0], "other" => [1, 1.0, 1.0]
    end

    it "counts a name that came back from zero, also if it has done more than before" do
      expect(between([total("a", 2)], [total("a", 3, begun: 9.0), total("other", 2)]))
        .to eq "a" => [3, 3.0, 3.0], "other" => [0, 0.0, 0.0]
    end

    it "leaves out what floating point numbers have lost" do
      later = total("other", 3).with(ran: 0.1 + 0.2, waited: {})

      expect(between([total("other", 3).with(ran: 0.3)], [later])).to eq "other" => [0, 0.0, 0.0]
    end
  end

  describe "Heddle::Metrics::Growth#take" do
    let(:growth) { Heddle::Metrics.const_get(:Growth).new }

    before { require "heddle/metrics/growth" }

    def take(*totals) = growth.take({}, totals).last

    it "does not count again for other what a replaced name had done" do
      take(total("a", 2))

      expect(counted(take(total("b", 7, begun: 9.0), total("other", 2)))).to eq "b" => [7, 7.0, 7.0]
    end

    it "has the first 100 names, and other for all further ones" do
      100.times { |number| take(total("name#{number}", 1, begun: number.to_f)) }

      expect(take(total("new", 3, begun: 200.0), total("name0", 1, begun: 201.0)).map(&:name)).to eq %w[other name0]
    end
  end
end
