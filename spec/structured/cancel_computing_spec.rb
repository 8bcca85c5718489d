# frozen_string_literal: true

RSpec.describe "Cancelling a CPU-bound fiber" do
  it "raises in it when the time limit of cancel_after expires" do
    raised = Heddle.run do
      fiber = Heddle::YieldingFiber.schedule do
        Heddle.cancel_after(0.01) { loop { nil } }
      rescue Heddle::TimeoutError => e
        raised = e
      end
      sleep(0) while fiber.alive?
      raised
    end
    expect(raised).to be_a Heddle::TimeoutError
  end

  it "continues after the block when the time limit of move_on_after expires" do
    value = Heddle.run(preempt: :all) { Heddle.move_on_after(0.01, value: :moved_on) { loop { nil } } }
    expect(value).to eq :moved_on
  end

  it "by Heddle.stop ends it, and its ensure runs" do
    events = []
    Heddle.run(preempt: :all) do
      fiber = Heddle.spin do
        loop { nil }
      ensure
        events << :ensured
      end
      sleep 0
      Heddle.stop(fiber)
    end
    expect(events).to eq [:ensured]
  end

  # The fiber has so many waiting fibers to notify that it is preempted meanwhile. The first of them then terminates it.
  it "does not keep it from waking all the fibers that await it" do
    awaited = Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
      gate = Queue.new
      fiber = Heddle.spin { gate.pop && :ended }
      Heddle.spin do
        Heddle.await(fiber)
        Heddle.stop(fiber)
      end
      waiting = Array.new(1000) { Heddle.spin { Heddle.await(fiber).inspect } }
      Heddle.spin { gate.push(:open) }
      Heddle.await_all(*waiting)
    end
    expect(awaited.tally).to eq(":ended" => 1000)
  end

  # Array#inspect and Kernel#inspect are written in C, and one calls the other.
  it "does not raise in a C function that another C function has called" do
    array = Array.new(10) { Object.new }
    places = Array.new(30) do
      Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
        Heddle.cancel_after(0.0005) { loop { array.inspect } }
      rescue Heddle::TimeoutError => e
        e.cause.backtrace_locations.first(2).map(&:base_label)
      end
    end
    expect(places).not_to include(%w[inspect inspect])
  end

  it "does not make a descriptor close twice" do
    kept = []
    Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
      300.times do
        Heddle.move_on_after(0.0002) { loop { IO.pipe.each(&:close) } }
        kept << File.open(File::NULL)
      end
    end
    GC.start
    expect(kept.map(&:read)).to all(eq(""))
  ensure
    kept.each(&:close)
  end

  # The time limit often expires where nothing can be raised, and the block ends soon after.
  it "never raises after the end of the block with the time limit" do
    array = Array.new(30) { Object.new }
    Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
      waker = Heddle.spin { loop { sleep(a_moment) } }
      1000.times do
        Heddle.move_on_after(0.0002) { 12.times { array.inspect } }
        expect { 5.times { array.inspect } }.not_to raise_error
      end
      Heddle.stop(waker)
    end
  end
end
