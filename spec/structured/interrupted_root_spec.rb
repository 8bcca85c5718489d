# frozen_string_literal: true

RSpec.describe "Heddle.cancel_after in a thread's root" do
  it "does not run its block any more if something is raised before it knows the block's fiber" do
    ran = false
    thread = Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      trace = TracePoint.new(:c_return) do |event|
        next unless event.method_id == :spawn

        trace.disable
        raise "at the end of spawn"
      end
      trace.enable(target_thread: Thread.current)
      Heddle.cancel_after(20) { ran = true }
    rescue RuntimeError => e
      Fiber.scheduler.run
      e.message
    end

    expect([thread.value, ran]).to eq ["at the end of spawn", false]
  end
end
