# frozen_string_literal: true

require "heddle/testing"
require "zlib"

# Ruby preempts a fiber within a line, too: at a branch that it takes.
RSpec.describe "A branch within a line" do
  # What two fibers share.
  let(:counter) do
    Class.new do
      def initialize = @count = 1
      def hit = @count = (@count || 0) + 1
      def check = @count == 3 || raise("lost")
    end
  end

  # Runs the block in two fibers for each schedule, with an object of the class, which is checked afterwards.
  #
  # @return [Heddle::Testing::Failure, nil]
  def failure(counter, **options)
    Heddle::Testing.explore(runs: 300, **options) do
      count = counter.new
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { block_given? ? yield(count) : count.hit } })
      count.check
    end
    nil
  rescue Heddle::Testing::Failure => e
    e
  end

  it "is a point at which an update is lost" do
    expect(failure(counter).message).to match(/^lost.*one switch is enough/m)
  end

  it "is told in the report, with the rest of the line after it" do
    line = /branches_spec.rb:\d+  def hit = @count =.*\n/
    preempted = / +-- preempted in line \d+, at a branch\n/

    expect(failure(counter).message).to match(/^  A .*\n.*#{line}#{preempted}  B .*#{line}  A .*#{line}/m)
  end

  it "is found again by the schedule of the report" do
    schedule = failure(counter).schedule

    expect(failure(counter, schedule:).message).to start_with("lost")
  end

  it "is no point in Heddle.without_preemption" do
    expect(failure(counter) { |count| Heddle.without_preemption { count.hit } }).to be_nil
  end

  it "is a point at which a lock is kept" do
    lock = Mutex.new

    expect(failure(counter) { |count| lock.synchronize { count.hit } }).to be_nil
  end

  it "is a point of an Enumerator that a fiber resumes" do
    found = failure(counter) { |count| Enumerator.new { |values| values << count.hit }.next }

    expect(found.message).to include("at a branch")
  end

  it "is in all schedules" do
    expect(failure(counter, strategy: :exhaustive).switches).to eq(1)
  end

  it "comes after the end of Queue#empty?, which is a point" do
    takers = lambda do
      queue = Queue.new([1])
      Heddle.await_all(*Array.new(2) { Heddle.spin { queue.pop unless queue.empty? } })
    end

    expect { Heddle::Testing.explore(runs: 300, &takers) }.to raise_error(Heddle::Testing::Failure, /^Deadlock/)
  end
end
