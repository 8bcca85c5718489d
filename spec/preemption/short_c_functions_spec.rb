# frozen_string_literal: true

# Where a fiber calls only short functions written in C, Ruby checks for interrupts when they return.
RSpec.describe "A fiber that calls nothing but short C functions" do
  object = Object.new
  monitor = Monitor.new
  mutex = Mutex.new
  {
    "Object.new" => -> { Object.new },
    "Math.sqrt" => -> { Math.sqrt(2.0) },
    "Process.clock_gettime" => -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) },
    "Time.now" => -> { Time.now },
    "rand" => -> { rand },
    "respond_to?" => -> { object.respond_to?(:nothing) },
    "instance_variable_get" => -> { object.instance_variable_get(:@nothing) },
    "Exception.new" => -> { ArgumentError.new("a message") },
    "Mutex#lock and #unlock" => -> { mutex.lock.unlock },
    "Monitor#enter and #exit" => lambda {
      monitor.enter
      monitor.exit
    }
  }.each do |name, call|
    it "is preempted each time that another fiber is due: #{name}" do
      runs = 0
      Heddle.run do
        Fiber.schedule { sleep(0.0001) while (runs += 1) < 30 }
        YieldingFiber.schedule { call.call while runs < 30 }
      end
      expect(runs).to eq 30
    end
  end
end
