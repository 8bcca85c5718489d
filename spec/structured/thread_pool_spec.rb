# frozen_string_literal: true

RSpec.describe Heddle::ThreadPool do
  subject(:pool) { described_class.new(size) }

  let(:size) { 2 }

  after { pool.close }

  # Lets nobody go on before it is opened.
  let(:gate) { Queue.new }

  it "does the work in another thread, whose scheduler is none, while fibers go on" do
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

  it "raises the work's error" do
    expect { Heddle.run { pool.process { raise KeyError, "in the pool" } } }.to raise_error(KeyError, "in the pool")
  end

  it "raises an error if the work is left by a throw" do
    expect { Heddle.run { pool.process { throw :ball } } }.to raise_error(UncaughtThrowError)
  end

  it "uses no more threads than it may, and keeps them" do
    threads = Heddle.run do
      Heddle.await(*Array.new(20) { Heddle.spin { pool.process { Thread.pass || Thread.current } } })
    end

    expect(threads.uniq.size).to be <= 2
  end

  it "is used by threads without fibers, too" do
    expect(Array.new(3) { |i| Thread.new { pool.process { i } } }.map(&:value)).to eq([0, 1, 2])
  end

  context "with one thread" do
    let(:size) { 1 }

    it "comes to no standstill when jobs wait for jobs, to any depth" do
      dive = ->(depth) { depth.zero? ? :bottom : pool.process { dive.call(depth - 1) } }

      expect(Heddle.run { dive.call(50) }).to eq(:bottom)
    end

    it "comes to no standstill when jobs wait for jobs that they handed in before" do
      value = Heddle.run do
        pool.process do
          jobs = Array.new(5) { |i| pool.cast { pool.cast { i }.await } }
          jobs.reverse.map(&:await)
        end
      end

      expect(value).to eq([4, 3, 2, 1, 0])
    end

    it "takes work back that nobody has begun when who waits for it is cancelled" do
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

  it "does what has been handed in before it closes, and takes nothing more" do
    job = pool.cast { :done }
    pool.close

    expect(job.await).to eq(:done)
    expect { pool.cast { :late } }.to raise_error(ClosedQueueError)
  end

  it "works in a forked child, with threads of its own" do
    pool.process { :parent }

    expect(Heddle.run { in_child { pool.process { :child } } }).to eq(:child)
  end

  it "is there ready made" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      puts Heddle.run { Heddle::ThreadPool.process { :shared } }
    RUBY

    expect([output, errors]).to eq(["shared\n", ""])
  end
end
