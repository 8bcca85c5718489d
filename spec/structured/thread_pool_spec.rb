# frozen_string_literal: true

RSpec.describe Heddle::ThreadPool do
  subject(:pool) { described_class.new(threads: size) }

  let(:size) { 2 }

  after { pool.close }

  # A job that pops from the gate waits until it is opened.
  let(:gate) { Queue.new }

  it "runs the block in another thread, which has no scheduler, while fibers continue" do
    events = []
    answer = Heddle.run do
      Heddle.spin { gate.push(:open) }
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
      Heddle.await_all(*Array.new(20) { Heddle.spin { pool.process { Thread.pass || Thread.current } } })
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

    it "withdraws a job that hasn't begun when the fiber that waits for it is cancelled" do
      ran = false
      Heddle.run do
        Heddle.spin { pool.process { gate.pop } }
        Heddle.snooze
        Heddle.move_on_after(0.001) { pool.process { ran = true } }
        gate.push(:open)
        pool.process { :next }
      end

      expect(ran).to be(false)
    end
  end

  it "runs the jobs that were submitted before it closes, and accepts no more" do
    value = Heddle.run do
      task = Heddle.spin { pool.process { gate.pop } }
      Heddle.snooze
      gate.push(:done)
      pool.close
      task.await
    end

    expect(value).to eq(:done)
    expect { pool.process { :late } }.to raise_error(ClosedQueueError, "Heddle::ThreadPool#process: the pool is closed")
  end

  it "cannot be closed by its own job, and stays open then" do
    expect { pool.process { pool.close } }.to raise_error(ThreadError, /Heddle::ThreadPool#close: a job can't wait/)
    expect(pool.process { :open }).to eq(:open)
  end

  it "stays closed in a forked child" do
    pool.close
    error = in_child do
      pool.process { :child }
    rescue ClosedQueueError => e
      e.message
    end

    expect(error).to eq("Heddle::ThreadPool#process: the pool is closed")
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

  it "refuses a number of threads that is no keyword" do
    expect { described_class.new(4) }.to raise_error(ArgumentError)
  end

  context "with one thread that is killed" do
    let(:size) { 1 }

    it "raises ThreadError where the job is awaited, and runs the jobs after it" do
      running = Queue.new
      lost = Thread.new { pool.process { running.push(Thread.current) && sleep } }
      lost.report_on_exception = false
      worker = running.pop
      queued = Thread.new { pool.process { :ran } }
      worker.kill

      expect { lost.value }.to raise_error(ThreadError, /its thread was killed/)
      expect(queued.value).to eq(:ran)
    end

    it "can be killed although its first job was started where that is masked" do
      running = Queue.new
      lost = Thread.new do
        Thread.handle_interrupt(Object => :never) { pool.process { running.push(Thread.current) && sleep } }
      end
      lost.report_on_exception = false
      running.pop.kill

      expect { lost.value }.to raise_error(ThreadError, /its thread was killed/)
    end

    it "continues after a job that ends its thread" do
      expect { pool.process { Thread.exit } }.to raise_error(ThreadError)
      expect(pool.process { :next }).to eq(:next)
    end
  end
end
