# frozen_string_literal: true

require "timeout"

# Ruby runs the program's own code while ticks are suppressed. It may wait, and ticks must not stop until it is done.
RSpec.describe "A tick, while the program's own code waits where ticks are suppressed," do
  # Two fibers that only take turns if the first is preempted. The block is called when they have.
  def take_turns
    turn = false
    computing = Heddle.spin { nil until turn }
    Heddle.spin { turn = true }
    Heddle.await(computing)
    yield
  end

  it "preempts beside an exception whose `initialize` waits" do
    gate = Queue.new
    error = Class.new(StandardError) do
      define_method(:initialize) do |*arguments|
        gate.pop
        super(*arguments)
      end
    end
    raised = Heddle.run(preempt: :all) do
      limited = Heddle.spin do
        Timeout.timeout(0.001, error) { loop { nil } }
      rescue error => e
        e
      end
      sleep 0 until gate.num_waiting.positive?
      take_turns { gate << :go }
      Heddle.await(limited)
    end
    expect(raised).to be_a error
  end

  it "preempts fibers of another thread beside an `initialize` that blocks its own thread" do
    begun, gate = Array.new(2) { Queue.new }
    error = Class.new(StandardError) do
      define_method(:initialize) do |*arguments|
        begun << true
        Fiber.blocking { gate.pop }
        super(*arguments)
      end
    end
    other = Thread.new do
      begun.pop
      Heddle.run(preempt: :all) { take_turns { gate << :go } }
    end
    raised = Heddle.run(preempt: :all) do
      Timeout.timeout(0.001, error) { loop { nil } }
    rescue error => e
      e
    end
    other.join
    expect(raised).to be_a error
  end
end
