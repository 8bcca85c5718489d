# frozen_string_literal: true

RSpec.describe Heddle::Deadline do
  # Computes until the limit has elapsed, without a wait.
  def compute_beyond(deadline)
    Thread.pass while deadline.remaining.positive?
  end

  it "is passed to the block of cancel_after and move_on_after" do
    seen = Heddle.run do
      [Heddle.cancel_after(60) { |deadline| deadline }, Heddle.move_on_after(30) { |deadline| deadline }]
    end

    expect(seen).to all(be_a(described_class)).and have_attributes(size: 2)
    expect(seen.map(&:seconds)).to eq([60, 30])
  end

  it "is not passed to a lambda that takes no argument" do
    expect(Heddle.run { Heddle.cancel_after(60, &-> { :called }) }).to eq(:called)
  end

  it "is passed to a lambda that takes an argument" do
    expect(Heddle.run { Heddle.cancel_after(60, &->(deadline) { deadline.seconds }) }).to eq(60)
  end

  it "tells the time that remains" do
    left = virtually { Heddle.cancel_after(60) { |deadline| sleep(20) && deadline.remaining } }

    expect(left).to be_within(0.000001).of(40)
  end

  it "can be moved to a later time, again and again" do
    value = virtually do
      Heddle.cancel_after(60) do |deadline|
        20.times { deadline.reset(60) && sleep(59) }
        :done
      end
    end

    expect(value).to eq(:done)
  end

  it "can be moved to an earlier time" do
    expect { virtually { Heddle.cancel_after(60) { |deadline| deadline.reset(1) && sleep(30) } } }
      .to raise_error(Heddle::TimeoutError, "cancel_after: 1 s elapsed")
  end

  it "can be moved by another fiber, and by another thread, while its block waits" do
    values = Heddle.run do
      by_fiber = Heddle.move_on_after(60, value: :late) do |deadline|
        Heddle.spin { deadline.reset(0.001) } && sleep
      end
      by_thread = Heddle.move_on_after(60, value: :later) do |deadline|
        Thread.new { deadline.reset(0.001) } && sleep
      end
      [by_fiber, by_thread]
    end

    expect(values).to eq(%i[late later])
  end

  it "can be moved after its time, as long as nothing has been raised" do
    value = Heddle.run do
      Heddle.cancel_after(0.001) do |deadline|
        compute_beyond(deadline)
        deadline.reset(60) && sleep(a_moment) && :spared
      end
    end

    expect(value).to eq(:spared)
  end

  it "can be moved by a number whose conversion waits" do
    seconds = Class.new(Numeric) do
      def finite? = true
      def negative? = false
      def divmod(other) = sleep(0) && 1.divmod(other)
      def coerce(other) = [other, 1]
      def to_s = "1"
    end

    expect { virtually { Heddle.cancel_after(60) { |deadline| deadline.reset(seconds.new) && sleep(30) } } }
      .to raise_error(Heddle::TimeoutError, /1 s elapsed/)
  end

  it "can be moved while a fiber computes" do
    value = Heddle.run(preempt: :all) do
      Heddle.move_on_after(60, value: :late) { |deadline| deadline.reset(0.005) && loop { nil } }
    end

    expect(value).to eq(:late)
  end

  it "can't be moved after the exception was raised" do
    moved = nil
    virtually do
      Heddle.move_on_after(1) do |deadline|
        sleep
      ensure
        moved = deadline.reset(60)
      end
    end

    expect(moved).to be(false)
  end

  it "can't be moved after its block, and then raises nothing" do
    values = virtually do
      deadline = Heddle.cancel_after(60) { |limit| limit }
      [deadline.reset(0), sleep(3600) && :undisturbed]
    end

    expect(values).to eq([false, :undisturbed])
  end

  it "moves its own block's limit, and not that of a block around it" do
    values = virtually do
      Heddle.move_on_after(10, value: :outer) do
        Heddle.move_on_after(1, value: :inner) { |deadline| deadline.reset(60) && sleep }
      end
    end

    expect(values).to eq(:outer)
  end

  it "leaves no timer behind" do
    before, after = Heddle.run do
      before = state_counts
      100.times { Heddle.cancel_after(60) { |deadline| 3.times { deadline.reset } } }
      [before, state_counts]
    end

    expect(after).to eq(before)
  end

  it "refuses what is no time" do
    expect { Heddle.run { Heddle.cancel_after(60) { |deadline| deadline.reset(-1) } } }
      .to raise_error(ArgumentError, "Heddle::Deadline#reset: seconds must be finite and not negative, not -1")
  end
end
