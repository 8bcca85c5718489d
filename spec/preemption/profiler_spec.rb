# frozen_string_literal: true

# Each example has a process of its own: a job can't be removed from Ruby's table of postponed jobs.
RSpec.describe "A profiler beside CPU-bound fibers" do
  include Libraries

  # Three fibers count, and a fourth sleeps, until `enough` returns true for the number of sleeps. Prints this number,
  # whether the fibers have counted correctly, and whether any fiber was preempted.
  beside_cpu_bound_fibers = <<~RUBY
    def counts_right?
      count = sum = 0
      sum += (count += 1) until yield
      sum == count * (count + 1) / 2
    end

    def beside_cpu_bound_fibers(ticker, &enough)
      Heddle.run(ticker:) do
        sleeps = 0
        over = false
        right = []
        3.times { YieldingFiber.schedule { right << counts_right? { over } } }
        sleeper = Fiber.schedule do
          sleep(0.001) && sleeps += 1 until enough.call(sleeps)
          over = true
        end
        sleep(0.001) while sleeper.alive? || right.size < 3
        p sleeps, right, Fiber.scheduler.stats[:run_queue][:preemptions_count].positive?
      end
    end
  RUBY

  # A postponed job of another library, triggered every 0.5 ms by a native thread that Ruby doesn't know. The C
  # library calls `rb_postponed_job_trigger` itself when the timer expires. The structures are those of 64-bit Linux.
  foreign_job = <<~RUBY
    begin
      require "fiddle"
    rescue LoadError
      exit #{Libraries::MISSING}
    end

    LIBRARY = Fiddle.dlopen(nil)
    POINTER = Fiddle::TYPE_VOIDP
    NOTIFY_BY_THREAD = 2
    PERIOD = 500_000 # ns

    def call(name, types, *arguments)
      Fiddle::Function.new(LIBRARY[name], types, Fiddle::TYPE_INT).call(*arguments)
    end

    SAMPLE = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_VOID, [POINTER]) { $samples += 1 }
    HANDLE = call("rb_postponed_job_preregister", [Fiddle::TYPE_INT, POINTER, POINTER], 0, SAMPLE, nil)

    def start_sampling
      $samples = 0
      id = [0].pack("Q")
      event = [HANDLE, 0, NOTIFY_BY_THREAD, LIBRARY["rb_postponed_job_trigger"]].pack("QllQ").ljust(64, "\\0")
      created = call("timer_create", [Fiddle::TYPE_INT, POINTER, POINTER], Process::CLOCK_MONOTONIC, event, id)
      timer = id.unpack1("Q")
      period = [0, PERIOD, 0, PERIOD].pack("q4")
      set = call("timer_settime", [POINTER, Fiddle::TYPE_INT, POINTER, POINTER], timer, 0, period, nil)
      abort "there is no timer" unless [created, set].all?(0)
    end
  RUBY

  Selection.tickers.each do |ticker|
    orders = {
      "whose job was registered first" => "#{foreign_job}\nrequire 'heddle'",
      "whose job was registered later" => "require 'heddle'\n#{foreign_job}"
    }
    orders.each do |order, loading|
      it "#{order} runs its job, and the fibers are preempted, with the ticker #{ticker}" do
        output, errors, status = run_ruby(<<~RUBY)
          #{loading}
          #{beside_cpu_bound_fibers}
          start_sampling
          beside_cpu_bound_fibers(:#{ticker}) { |sleeps| sleeps >= 20 && $samples >= 100 }
          # A sample may be on its way in a native thread of the C library. It must find Ruby in place.
          $stdout.flush
          exit!(true)
        RUBY
        skip_or_fail_without("fiddle") if status.exitstatus == Libraries::MISSING
        expect([output, errors, status.success?]).to match [/\A\d+\n\[true, true, true\]\ntrue\n\z/, "", true]
      end
    end

    %i[cpu wall].each do |mode|
      it "finds the CPU-bound fibers: StackProf in its mode #{mode}, with the ticker #{ticker}" do
        expect(printed(<<~RUBY, library: "stackprof")).to match(/\A\d+\n\[true, true, true\]\ntrue\ntrue\ntrue\n\z/)
          require #{Clock::PATH.dump}
          #{beside_cpu_bound_fibers}
          profile = StackProf.run(mode: :#{mode}, interval: 500) do
            enough = Clock.cpu + 0.2
            beside_cpu_bound_fibers(:#{ticker}) { |sleeps| sleeps >= 50 && Clock.cpu > enough }
          end
          p profile[:samples].positive?
          p profile[:frames].each_value.any? { |frame| frame[:name].end_with?("counts_right?") }
        RUBY
      end
    end
  end
end
