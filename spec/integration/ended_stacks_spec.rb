# frozen_string_literal: true

RSpec.describe "The stacks of fibers that have ended" do
  # Each stack takes two of the process's memory maps.
  def maps
    File.foreach("/proc/self/maps").count
  end

  def major_collections
    GC.stat(:major_gc_count)
  end

  around do |example|
    GC.start
    GC.disable
    example.run
  ensure
    GC.enable
  end

  it "are freed by minor collections, even if the program has disabled the collector",
     skip: !File.exist?("/proc/self/maps") do
    before = [maps, major_collections]
    Heddle.run { 30_000.times { Fiber.schedule { nil } } }

    expect(maps - before[0]).to be < 30_000
    expect(major_collections - before[1]).to be <= 1
  end
end
