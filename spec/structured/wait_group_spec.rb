# frozen_string_literal: true

RSpec.describe Heddle::WaitGroup do
  let(:group) { described_class.new }

  it "waits until its count is zero" do
    events = []
    virtually do
      3.times do |i|
        group.add
        Heddle.spin do
          sleep(i)
          events << i
          group.done
        end
      end
      group.wait
      events << :waited
    end

    expect(events).to eq([0, 1, 2, :waited])
  end

  it "doesn't wait when its count is zero" do
    expect(Heddle.run { group.wait }).to be(true)
  end

  it "returns false when the time limit expires, and can be waited for again" do
    answers = virtually do
      group.add
      first = group.wait(timeout: 1)
      Heddle.spin { group.done }
      [first, group.wait(timeout: 60), group.count]
    end

    expect(answers).to eq([false, true, 0])
  end

  it "counts across fibers of several threads and plain threads" do
    done = Queue.new
    group.add(20)
    threads = Array.new(2) do
      Thread.new do
        Heddle.run do
          Heddle.await_all(*Array.new(5) { Heddle.spin { sleep(0.001) && done.push(1) && group.done } })
        end
      end
    end
    threads.concat(Array.new(10) { Thread.new { done.push(1) && group.done } })
    waiters = [Thread.new { group.wait && done.size }, Thread.new { Heddle.run { group.wait && done.size } }]

    expect(waiters.map(&:value)).to eq([20, 20])
    threads.each(&:join)
  end

  it "refuses more calls of done than were added" do
    expect { group.done }.to raise_error(ThreadError, /nothing is under way/)
  end

  it "forgets a waiter that is cancelled" do
    value = virtually do
      group.add
      Heddle.move_on_after(1) { group.wait }
      group.done
      group.wait
    end

    expect(value).to be(true)
  end

  describe "#go" do
    it "makes a fiber that is counted until its end" do
      counts = virtually do
        fibers = Array.new(3) { |i| group.go(i) { |n| sleep(n) && n } }
        before = group.count
        [before, group.wait, group.count, Heddle.await_all(*fibers)]
      end

      expect(counts).to eq([3, true, 0, [0, 1, 2]])
    end

    it "counts down for a fiber that is terminated before it has begun, or killed" do
      Heddle.run do
        unborn = group.go { :never }
        Heddle.terminate(unborn)
        killed = group.go { sleep }
        Heddle.snooze
        killed.kill
        group.wait
      end

      expect(group.count).to eq(0)
    end

    it "raises the fiber's error in the parent, as Heddle.spin does" do
      attempt = lambda do
        Heddle.run do
          group.go { raise KeyError, "mine" }
          sleep
        end
      end

      expect(&attempt).to raise_error(KeyError, "mine")
      expect(group.count).to eq(0)
    end

    it "needs a scheduler" do
      expect { group.go { nil } }.to raise_error(RuntimeError, /\AHeddle::WaitGroup#go needs a scheduler.*Heddle\.run/)
      expect(group.count).to eq(0)
    end
  end
end
