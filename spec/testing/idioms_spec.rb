# frozen_string_literal: true

require "heddle/testing"

# One-line idioms that three fibers run on one object. Real ticks every 0.1 ms have decided which of them can go wrong:
# each of the first table went wrong within 320,000 tries, on Ruby 3.3 and 3.4, and none of the second in 180,000.
# docs/testing.md has them by kind.
RSpec.describe "An idiom in one line" do
  let(:shared) do
    Struct.new(:list, :table, :set, :number, :text) do
      def lock = @lock ||= Mutex.new
    end
  end

  # Whether an exploration finds that the three results of the line, or what the line leaves behind, are wrong.
  def goes_wrong?(line, right)
    Heddle::Testing.explore(runs: 300) do
      object = shared.new([], {}, Set.new, 0, +"")
      results = Heddle.await_all(*%w[A B C].map { |name| Heddle.spin(name:) { line.call(object) } })
      raise "wrong" unless right.call(object, results)
    end
    false
  rescue Heddle::Testing::Failure
    true
  end

  once = ->(object, _) { object.list.size == 1 }
  distinct = ->(object, _) { object.list.uniq.size == 3 }
  counted = ->(object, _) { [object.number, object.table[1], object.text.to_i].include?(3) }
  grown = ->(object, _) { [object.list.size, object.table.size].include?(3) }
  same = ->(_, results) { results.all? { |result| result.equal?(results.first) } }
  stored = ->(object, results) { results.compact.all? { |result| result.equal?(object.table[1]) } }

  can_go_wrong = {
    "<< unless include?" => [once, ->(obj) { obj.list << 1 unless obj.list.include?(1) }],
    "include? || <<" => [once, ->(obj) { obj.list.include?(1) || (obj.list << 1) }],
    "<< unless any?" => [once, ->(obj) { obj.list << 1 unless obj.list.any? }],
    "<< unless any? with a block" => [once, ->(obj) { obj.list << 1 unless obj.list.any? { |each| each == 1 } }],
    "find || <<" => [once, ->(obj) { obj.list.find { |each| each == 1 } || (obj.list << 1) }],
    "<< if Set#include? && Set#add" => [once, ->(obj) { obj.list << 1 if !obj.set.include?(1) && obj.set.add(1) }],
    "<< the greatest" => [distinct, ->(obj) { obj.list << ((obj.list.max || 0) + 1) }],
    "<< the sum" => [distinct, ->(obj) { obj.list << (obj.list.sum + 1) }],
    "fetch with a default" => [counted, ->(obj) { obj.table[1] = obj.table.fetch(1, 0) + 1 }],
    "|| with a default" => [counted, ->(obj) { obj.table[1] = (obj.table[1] || 0) + 1 }],
    "dig" => [counted, ->(obj) { obj.table[1] = (obj.table.dig(1) || 0) + 1 }], # rubocop:disable Style/SingleArgumentDig
    "to_i" => [counted, ->(obj) { obj.number = obj.number.to_i + 1 }],
    "to_s" => [counted, ->(obj) { obj.text = (obj.text.to_i + 1).to_s }],
    "? :" => [counted, ->(obj) { obj.number = obj.number.zero? ? 1 : obj.number + 1 }],
    "interpolation and to_i" => [counted, ->(obj) { obj.number = "#{obj.number}".to_i + 1 }], # rubocop:disable Style/RedundantInterpolation
    "format" => [counted, ->(obj) { obj.number = format("%d", obj.number).to_i + 1 }],
    "store and fetch" => [counted, ->(obj) { obj.table.store(1, obj.table.fetch(1, 0) + 1) }],
    "key? ? :" => [counted, ->(obj) { obj.table.key?(1) ? obj.table[1] += 1 : obj.table[1] = 1 }],
    "map and sum" => [counted, ->(obj) { obj.number = [obj.number, 1].map(&:itself).sum }],
    "clamp" => [counted, ->(obj) { obj.number = (obj.number + 1).clamp(0, 9) }],
    "then" => [counted, ->(obj) { obj.number = obj.number.then { |number| number + 1 } }],
    "tap" => [counted, ->(obj) { obj.number = obj.number.tap { |number| number || 1 } + 1 }],
    "merge" => [grown, ->(obj) { obj.table = obj.table.merge(obj.table.size => 1) }],
    "dup and <<" => [grown, ->(obj) { obj.list = obj.list.dup << 1 }],
    "fetch with a block" => [stored, ->(obj) { obj.table.fetch(1) { obj.table[1] = Object.new } }],
    "@variable ||= Mutex.new" => [same, ->(obj) { obj.lock }],
    "[]= unless key?" => [stored, ->(obj) { obj.table[1] = Object.new unless obj.table.key?(1) }],
    "[]= if nil?" => [stored, ->(obj) { obj.table[1] = Object.new if obj.table[1].nil? }],
    "||= new" => [stored, ->(obj) { obj.table[1] ||= Object.new }],
    "||= dup" => [stored, ->(obj) { obj.table[1] ||= "x".dup }]
  }

  it "is found where it can go wrong", timeout: 300 do
    expect(can_go_wrong.reject { |_, (right, line)| goes_wrong?(line, right) }.keys).to eq([])
  end

  # Ruby checks for interrupts nowhere between the read and the write.
  cannot_go_wrong = {
    "<< size" => [distinct, ->(obj) { obj.list << (obj.list.size + 1) }],
    "an accessor" => [counted, ->(obj) { obj.number += 1 }],
    "<< if empty?" => [once, ->(obj) { obj.list << 1 if obj.list.empty? }],
    "first and nil?" => [once, ->(obj) { (first = obj.list.first) || (first.nil? && (obj.list << 1)) }],
    "interpolation" => [->(obj, _) { obj.text.size == 3 }, ->(obj) { obj.text = "#{obj.text}x" }],
    "&." => [counted, ->(obj) { obj.number = obj.number&.succ }],
    "+= of an Array" => [->(obj, _) { obj.list.size == 3 }, ->(obj) { obj.list += [1] }],
    "*" => [->(obj, _) { obj.list.size == 3 }, ->(obj) { obj.list = [*obj.list, 1] }],
    "min of what is written" => [counted, ->(obj) { obj.number = [obj.number + 1, 9].min }],
    "push of the size" => [distinct, ->(obj) { obj.list.push(obj.list.size) }]
  }

  it "raises no false alarm where it cannot go wrong", timeout: 300 do
    expect(cannot_go_wrong.select { |_, (right, line)| goes_wrong?(line, right) }.keys).to eq([])
  end
end
