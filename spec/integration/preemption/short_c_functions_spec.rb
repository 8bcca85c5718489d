# frozen_string_literal: true

# Where a fiber calls only short functions written in C, Ruby checks for interrupts when they return.
RSpec.describe "A fiber that calls nothing but short C functions", if: File.directory?("/proc/self/task") do
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
    "Monitor#enter and #exit" => -> { monitor.enter && monitor.exit }
  }.each do |name, call|
    it "is preempted at every third tick at least, if another fiber is due: #{name}" do
      preempted, ticks = Heddle.run(ticker: :timerfd) do
        result = Queue.new
        YieldingFiber.schedule do
          runs = 0
          ticks = Ticking.wakings
          preempted = Fiber.scheduler.preemptions
          Fiber.schedule { sleep(0.0001) while (runs += 1) < 30 }
          100.times { call.call } while runs < 30
          result.push([Fiber.scheduler.preemptions - preempted, Ticking.wakings - ticks])
        end
        result.pop
      end
      expect(preempted).to be > ticks / 3
    end
  end
end
