# frozen_string_literal: true

RSpec.describe Heddle::ThreadPool do
  subject(:pool) { described_class.new(size) }

  let(:size) { 2 }

  after { pool.close }

  # A job that pops from the gate waits until it is opened.
  let(:gate) { Queue.new }

  it "runs the block in another thread, which has no scheduler, while fibers continue" do
    events = []
    answer = Heddle.run do
      Heddle.spin { sleep(0.001) && gate.push(:open) }
      pool.process do
        gate.pop
        events << :work
        [Thread.current.equal?(Thread.main), Fiber.scheduler]
      end
    end

    expect([answer, events]).to eq([[false, nil], [:work]])
  end

  it "raises the block's error" do
    expect { Heddle.run { pool.process { raise KeyError, "in the pool" } } }.to raise_error(KeyError, "in the pool")
  end

  it "raises an error if a throw leaves the block" do
    expect { Heddle.run { pool.process { throw :ball } } }.to raise_error(UncaughtThrowError)
  end

  it "uses no more threads than its size, and keeps them" do
    threads = Heddle.run do
      Heddle.await(*Array.new(20) { Heddle.spin { pool.process { Thread.pass || Thread.current } } })
    end

    expect(threads.uniq.size).to be <= 2
  end

  it "can be used by threads without a scheduler, too" do
    expect(Array.new(3) { |i| Thread.new { pool.process { i } } }.map(&:value)).to eq([0, 1, 2])
  end

  context "with one thread" do
    let(:size) { 1 }

    it "doesn't deadlock when jobs wait for jobs, to any depth" do
      dive = ->(depth) { depth.zero? ? :bottom : pool.process { dive.call(depth - 1) } }

      expect(Heddle.run { dive.call(50) }).to eq(:bottom)
    end

    it "doesn't deadlock when jobs wait for jobs that they submitted before" do
      value = Heddle.run do
        pool.process do
          jobs = Array.new(5) { |i| pool.cast { pool.cast { i }.await } }
          jobs.reverse.map(&:await)
        end
      end

      expect(value).to eq([4, 3, 2, 1, 0])
    end

    it "withdraws a job that hasn't begun when the fiber that waits for it is cancelled" do
      ran = false
      Heddle.run do
        pool.cast { gate.pop }
        Heddle.move_on_after(0.001) { pool.process { ran = true } }
        gate.push(:open)
        pool.process { :next }
      end

      expect(ran).to be(false)
    end
  end

  it "tells whether it is busy" do
    states = Heddle.run do
      job = pool.cast { gate.pop }
      busy = pool.busy?
      gate.push(:open)
      job.await
      pass_until { !pool.busy? }
      [busy, job.ended?, pool.busy?]
    end

    expect(states).to eq([true, true, false])
  end

  it "runs the jobs that were submitted before it closes, and accepts no more" do
    job = pool.cast { :done }
    pool.close

    expect(job.await).to eq(:done)
    expect { pool.cast { :late } }.to raise_error(ClosedQueueError)
  end

  it "works in a forked child, with threads of its own" do
    pool.process { :parent }

    expect(Heddle.run { in_child { pool.process { :child } } }).to eq(:child)
  end

  it "has a default instance" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      puts Heddle.run { Heddle::ThreadPool.process { :shared } }
    RUBY

    expect([output, errors]).to eq(["shared\n", ""])
  end
end
