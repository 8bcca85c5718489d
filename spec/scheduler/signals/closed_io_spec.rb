# frozen_string_literal: true

RSpec.describe "A signal while a closed IO is closed again" do
  # A point is the end of a method that the root calls in `IO#close`.
  program = <<~RUBY
    require "heddle"
    require #{SignalSweep::PATH.dump}
    Fiber.set_scheduler(Heddle::Scheduler.new)
    Fiber.scheduler.run
    closed = IO.pipe.each(&:close).first
    SignalSweep.print_lost(2) { |sweep| sweep.watch { closed.close } }
  RUBY

  it "is raised, wherever it comes" do
    expect(run_ruby(program)).to match ["[]\ntrue\n", "", be_success]
  end
end
