# frozen_string_literal: true

RSpec.describe "A signal while a scheduler begins to close" do
  # Prints the points at which the signal was lost, or the fiber was left behind, and whether there were any points. A
  # point is the end of a method that the root calls between the end of the program's block and the wait for the other
  # fibers.
  program = <<~RUBY
    require "heddle"
    root = Fiber.current
    lost = []
    (1..).each do |point|
      count = 0
      closing = sent = ended = interrupted = nil
      trace = TracePoint.new(:return, :c_return, :b_return) do |event|
        next unless closing && Fiber.current.equal?(root) && !sent && (count += 1) == point

        sent = "\#{event.defined_class}#\#{event.method_id}"
        Process.kill(:INT, Process.pid)
      end
      begin
        trace.enable(target_thread: Thread.current)
        Heddle.run do
          Fiber.schedule do
            # Until the root waits for this fiber.
            sleep(0) until Fiber.scheduler.inspect.include?("close: 1")
            trace.disable
            Process.kill(:INT, Process.pid) unless sent
            sleep
          ensure
            ended = true
          end
          closing = true
        end
      rescue Interrupt
        interrupted = true
      end
      trace.disable
      lost << sent unless interrupted && ended && !Fiber.scheduler
      break p(lost, point > 5) unless sent
    end
  RUBY

  it "ends all fibers, wherever it comes" do
    expect(run_ruby(program)).to match ["[]\ntrue\n", "", be_success]
  end
end
