# frozen_string_literal: true

require "heddle/offload"

RSpec.describe "Heddle::Offload.call" do
  # The pool that an example uses.
  let(:pool) { Heddle::ThreadPool.new(threads: 2) }
  let(:gate) { Queue.new }

  around do |example|
    default = Heddle::Offload.pool
    Heddle::Offload.pool = pool
    example.run
  ensure
    Heddle::Offload.pool = default
    pool.close
  end

  def call(&) = Heddle::Offload.call(&)

  it "runs the block in a thread of the pool while other fibers run" do
    value = Heddle.run do
      Heddle.spin { sleep(0) && gate.push(:opened) }
      call { [Thread.current.name, gate.pop] }
    end

    expect(value).to eq ["Heddle::ThreadPool", :opened]
  end

  it "runs the block in place without a scheduler" do
    expect(call { Thread.current }).to be Thread.current
  end

  it "runs the block in place in a blocking fiber" do
    expect(Heddle.run { Fiber.new(blocking: true) { call { Thread.current } }.resume }).to be Thread.current
  end

  it "runs the block in place in a thread of the pool" do
    expect(Heddle.run { call { outer = Thread.current and call { Thread.current.equal?(outer) } } }).to be true
  end

  it "raises the block's error" do
    expect { Heddle.run { call { raise KeyError, "in the pool" } } }.to raise_error(KeyError, "in the pool")
  end

  it "ends the block when a time limit of the fiber is over" do
    ended = nil
    wait_in_pool = lambda do
      gate.pop
    ensure
      ended = Thread.current.name
    end
    limit = 0.001
    # A block that has not begun in time never begins.
    until ended
      limit *= 2
      expect { Heddle.run { Timeout.timeout(limit) { call(&wait_in_pool) } } }.to raise_error(Timeout::Error)
    end
    expect(ended).to eq "Heddle::ThreadPool"
  end

  it "ends the block before a fiber that is killed continues" do
    events = []
    Heddle.run do
      started = Queue.new
      fiber = Fiber.schedule do
        call do
          started.push(true) && gate.pop
        ensure
          events << :call
        end
      ensure
        events << :fiber
      end
      started.pop
      fiber.kill
    end

    expect(events).to eq %i[call fiber]
  end

  it "never runs a block that has not started when the fiber is cancelled" do
    ran = false
    Heddle.run do
      started = Queue.new
      blockers = Array.new(2) { Heddle.spin(background: true) { call { started.push(true) && gate.pop } } }
      2.times { started.pop }
      Heddle.move_on_after(0.01) { call { ran = true } }
      2.times { gate.push(:open) }
      Heddle.await_all(*blockers)
    end

    expect(ran).to be false
  end

  it "leaves the pool's thread usable after a block was ended" do
    value = Heddle.run do
      4.times { Heddle.move_on_after(0.005) { call { gate.pop } } }
      call { :usable }
    end

    expect(value).to be :usable
  end

  it "refuses a missing block" do
    expect { Heddle::Offload.call }.to raise_error(ArgumentError, "Heddle::Offload.call needs a block")
  end

  it "refuses a pool that is no ThreadPool" do
    expect { Heddle::Offload.pool = 4 }
      .to raise_error(TypeError, "Heddle::Offload.pool=: must be a Heddle::ThreadPool, not 4")
  end
end
