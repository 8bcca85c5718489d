# frozen_string_literal: true

# Where a fiber calls only short functions written in C, Ruby checks for interrupts when they return.
RSpec.describe "A fiber that calls nothing but short C functions", if: File.directory?("/proc/self/task") do
  # By the ticker's wake-ups, and by the milliseconds that this process has computed. On a busy machine the ticker also
  # wakes up while the fiber waits for a processor, or the fiber computes while the ticker waits for one.
  def ticks = [Ticking.wakings, Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :millisecond)]

  # How many times it is preempted per tick.
  def preempted_share(call)
    Heddle.run(ticker: :timerfd) do
      result = Queue.new
      YieldingFiber.schedule do
        runs = 0
        before = ticks
        preempted = Fiber.scheduler.preemptions
        Fiber.schedule { sleep(0.0001) while (runs += 1) < 30 }
        100.times { call.call } while runs < 30
        passed = ticks.zip(before).map { |counts| counts.reduce(:-) }.min
        result.push((Fiber.scheduler.preemptions - preempted).to_r / [passed, 1].max)
      end
      result.pop
    end
  end

  attempts = 5
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
    it "is preempted at every third tick at least, if another fiber is due: #{name}" do
      # Other programs can only make the share smaller.
      shares = Array.new(attempts).lazy.map { preempted_share(call) }

      expect(shares.find { |share| share > 1 / 3r }).to be_truthy
    end
  end
end
