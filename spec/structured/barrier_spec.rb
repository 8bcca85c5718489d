# frozen_string_literal: true

RSpec.describe Heddle::Barrier do
  let(:barrier) { described_class.new }

  it "returns the values of all its fibers, in the order in which they were added" do
    values = virtually do
      [3, 1, 2].each { |time| barrier.spin { sleep(time) && time } }
      [barrier.size, barrier.await_all, barrier.size]
    end

    expect(values).to eq([3, [3, 1, 2], 0])
  end

  it "stops all its fibers together, and waits for their ensure" do
    events = []
    virtually do
      3.times do |i|
        barrier.spin do
          sleep
        ensure
          sleep(1)
          events << i
        end
      end
      Heddle.snooze
      barrier.stop
      events << :stopped
    end

    expect(events).to eq([0, 1, 2, :stopped])
  end

  it "raises the first error after the other fibers have ended, and not in its parent as well" do
    events = []
    Heddle.run do
      barrier.spin do
        sleep
      ensure
        events << :ensured
      end
      barrier.spin { raise KeyError, "first" }
      begin
        barrier.await_all
      rescue KeyError => e
        events << e.message
      end
    end

    expect(events).to eq(%w[ensured first].then { |ensured, first| [ensured.to_sym, first] })
  end

  it "can be used again" do
    values = Heddle.run do
      Array.new(2) { |i| barrier.spin { i } && barrier.await_all }
    end

    expect(values).to eq([[0], [1]])
  end

  it "doesn't wait when it is empty" do
    expect(Heddle.run { [barrier.await_all, barrier.stop.empty?] }).to eq([[], true])
  end

  it "awaits and stops fibers of several threads" do
    started = Queue.new
    threads = Array.new(2) do |i|
      Thread.new do
        Heddle.run do
          quick = barrier.spin { i }
          slow = barrier.spin do
            sleep
          ensure
            started.push(:ensured)
          end
          Heddle.snooze
          started.push(:ready)
          Heddle.await_all(quick, slow)
        end
      end
    end
    2.times { started.pop }
    Heddle.run { barrier.stop }

    expect(threads.map(&:value)).to eq([[0, nil], [1, nil]])
    expect(Array.new(2) { started.pop }).to eq(%i[ensured ensured])
    expect(barrier.await_all).to eq []
  end

  it "can be stopped by one of its own fibers, which continues" do
    events = []
    Heddle.run do
      barrier.spin { sleep }
      barrier.spin { barrier.stop && (events << :goes_on) }
      barrier.await_all
    end

    expect(events).to eq([:goes_on])
  end

  it "forgets its fibers when it has stopped them", :regression do
    values = Heddle.run do
      2.times { barrier.spin { sleep } }
      barrier.stop
      barrier.spin { :next }
      barrier.await_all
    end

    expect(values).to eq([:next])
  end

  it "leaves an error that no fiber awaits to the parent, and forgets it when it has stopped the fibers" do
    values = Heddle.run do
      barrier.spin { raise KeyError, "mine" }
      begin
        sleep
      rescue KeyError => e
        barrier.stop
        [e.message, barrier.await_all]
      end
    end

    expect(values).to eq(["mine", []])
  end

  it "raises an error from each of two calls of await_all, which have begun before it" do
    raised = Heddle.run do
      barrier.spin { sleep(a_moment) && raise(KeyError) }
      Heddle.map(1..2) { barrier.await_all rescue $!.class } # rubocop:disable Style/RescueModifier, Style/SpecialGlobalVars
    end

    expect(raised).to eq([KeyError, KeyError])
  end

  it "lets await_all return nil for each fiber that it stops meanwhile" do
    values = Heddle.run do
      2.times { barrier.spin { sleep } }
      awaiting = Heddle.spin { barrier.await_all }
      pass_until { Heddle.state(awaiting) == :waiting }
      barrier.stop
      Heddle.await(awaiting)
    end

    expect(values).to eq([nil, nil])
  end

  it "forgets its fibers when it has stopped them after the end of an await_all that was cancelled" do
    values = Heddle.run do
      barrier.spin { sleep }
      awaiting = Heddle.spin { barrier.await_all }
      pass_until { Heddle.state(awaiting) == :waiting }
      Heddle.stop(awaiting)
      barrier.stop
      barrier.await_all
    end

    expect(values).to eq([])
  end
end
