# frozen_string_literal: true

RSpec.describe "A signal on a thread with another library's scheduler" do
  # A point is the end of a method that is called in `Mutex#sleep`, which Heddle has changed.
  program = <<~RUBY
    require "heddle"
    require #{SignalSweep::PATH.dump}
    Thread.new { Heddle.run {} }.join
    other = Class.new do
      %i[block unblock kernel_sleep io_wait fiber_interrupt close].each { |name| define_method(name) { |*| nil } }
    end
    Fiber.set_scheduler(other.new)
    SignalSweep.print_lost(2) do |sweep|
      Fiber.new do
        mutex = Mutex.new
        mutex.lock
        sweep.watch { mutex.sleep(a_moment) }
      end.resume
    end
  RUBY

  it "is raised, wherever it comes in Mutex#sleep" do
    expect(run_ruby(program)).to match ["[]\ntrue\n", "", be_success]
  end
end
