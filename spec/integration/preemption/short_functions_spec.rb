# frozen_string_literal: true

# Where a fiber calls short functions written in C all the time, Ruby looks at interrupts at their ends.
RSpec.describe "A fiber that calls nothing but short C functions", if: File.directory?("/proc/self/task") do
  # How often the ticker's thread was woken up to now.
  def wakings
    task = Dir.children("/proc/self/task").find do |each|
      File.read("/proc/self/task/#{each}/comm").chomp == "heddle ticker"
    end
    Integer(File.read("/proc/self/task/#{task}/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1])
  end

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
    it "is preempted at most ticks if somebody is due: #{name}" do
      preempted, ticks = Heddle.run(ticker: :timerfd) do
        turns = 0
        Fiber.schedule { sleep(0.0001) while (turns += 1) < 30 }
        result = Queue.new
        YieldingFiber.schedule do
          before = wakings
          100.times { call.call } while turns < 30
          result.push([Fiber.scheduler.preemptions, wakings - before])
        end
        result.pop
      end
      expect(preempted).to be > ticks / 2
    end
  end
end
