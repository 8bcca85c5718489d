# frozen_string_literal: true

RSpec.describe "The stacks of fibers that have ended" do
  # Each stack takes two of the process's memory maps.
  it "are freed by minor collections, even if the program has disabled the collector",
     skip: !File.exist?("/proc/self/maps") do
    output = printed(<<~RUBY)
      require "heddle"
      counts = -> { [File.foreach("/proc/self/maps").count, GC.stat(:major_gc_count)] }
      GC.start
      GC.disable
      before = counts.call
      Heddle.run { 30_000.times { Fiber.schedule { nil } } }
      maps, collections = counts.call.zip(before).map { |after, first| after - first }
      p maps < 30_000, collections <= 1
    RUBY
    expect(output).to eq "true\ntrue\n"
  end
end
