# frozen_string_literal: true

RSpec.describe "The ticker of a scheduler" do
  # A join returns a moment before the kernel removes the thread from its list.
  def until_no_more_tickers_than(count)
    Thread.pass until Ticking.tickers <= count
  end

  Selection.tickers.each do |ticker|
    it "doesn't start before the first yielding fiber: #{ticker}" do
      names = Heddle.run(ticker:) do
        5.times { Fiber.schedule { sleep(a_moment) } }
        sleep(a_moment)
        before = Fiber.scheduler.ticker
        YieldingFiber.schedule { nil }
        [before, Fiber.scheduler.ticker]
      end
      expect(names).to eq [nil, ticker]
    end

    it "doesn't start before the first resume of a yielding fiber: #{ticker}" do
      names = Heddle.run(ticker:) do
        fiber = YieldingFiber.new { nil }
        before = Fiber.scheduler.ticker
        fiber.resume
        [before, Fiber.scheduler.ticker]
      end
      expect(names).to eq [nil, ticker]
    end

    it "starts with the first fiber under preempt: :all, and not before: #{ticker}" do
      names = with_scheduler(ticker:, preempt: :all) do |scheduler|
        before = scheduler.ticker
        Fiber.schedule { nil }
        [before, scheduler.ticker]
      end
      expect(names).to eq [nil, ticker]
    end

    it "never starts under preempt: :none: #{ticker}" do
      names = Heddle.run(ticker:, preempt: :none) do
        YieldingFiber.schedule { nil }
        YieldingFiber.new { nil }.resume
        [Fiber.scheduler.ticker]
      end
      expect(names).to eq [nil]
    end

    # A root fiber that computes is not preempted, so the ticks end.
    it "ticks for a fiber that begins after the ticks have ended: #{ticker}" do
      woken = false
      with_scheduler(ticker:, preempt: :all) do |scheduler|
        Heddle.spin(background: true) { woken = sleep(a_moment) && true }
        Heddle.spin(background: true) { nil until woken }
        clock = Process::CLOCK_THREAD_CPUTIME_ID
        enough = Process.clock_gettime(clock) + 0.01
        nil until Process.clock_gettime(clock) > enough
        scheduler.run
      end
      expect(woken).to be true
    end

    it "ends when the scheduler is closed: #{ticker}" do
      scheduler = nil
      Heddle.run(ticker:) do
        scheduler = Fiber.scheduler
        preempt_a_fiber
      end
      expect(scheduler.ticker).to be_nil
    end

    it "can start again and again in one thread: #{ticker}" do
      names = Array.new(20) do
        Heddle.run(ticker:) do
          preempt_a_fiber
          Fiber.scheduler.ticker
        end
      end
      expect(names).to eq [ticker] * 20
    end

    it "can run in many threads at once: #{ticker}" do
      threads = Array.new(8) do
        Thread.new do
          Heddle.run(ticker:) do
            preempt_a_fiber
            [Fiber.scheduler.ticker, Fiber.scheduler.stats[:run_queue][:preemptions_count].positive?]
          end
        end
      end
      expect(threads.map(&:value)).to eq [[ticker, true]] * 8
    end

    it "stops ticking when all fibers wait: #{ticker}", if: File.directory?(Ticking::TASKS) do
      wake_ups = -> { Ticking.wakings + Ticking.wakings_of(Process.pid) }
      in_one_wait = lambda do
        before = wake_ups.call
        sleep(0.1) # at least
        wake_ups.call - before
      end
      idle = Heddle.run(ticker:, tick: 0.001) do
        waiting = Heddle.spin(background: true) { sleep }
        preempt_a_fiber
        # A ticker that doesn't stop makes 100: it wakes its own thread, or by its signal this one. What else wakes
        # this thread, such as the end of an earlier example's thread, ends.
        woken = in_one_wait.call until woken && woken < 50
        Heddle.stop(waiting)
        woken
      end
      expect(idle).to be < 50
    end

    it "ticks again when all fibers have waited: #{ticker}" do
      counts = Heddle.run(ticker:) do
        Array.new(5) do
          sleep(a_moment)
          preempt_a_fiber
          Fiber.scheduler.stats[:run_queue][:preemptions_count]
        end
      end
      expect(counts.uniq.size).to eq 5
    end

    it "leaves no descriptors and no threads behind: #{ticker}" do
      descriptors = -> { GC.start || Dir.children("/proc/self/fd").size }
      # The tickers of yielding fibers without a scheduler, in earlier examples, stay.
      tickers = Ticking.tickers
      Heddle.run(ticker:) { preempt_a_fiber }
      before = descriptors.call
      10.times { Heddle.run(ticker:) { preempt_a_fiber } }
      # There are fewer if the garbage collector has meanwhile closed what earlier examples left.
      expect(descriptors.call).to be <= before
      until_no_more_tickers_than(tickers)
    end

    it "doesn't cut a blocking read of the program short: #{ticker}" do
      text = IO.pipe do |reader, writer|
        child = spawn("sleep 0.05; echo late", out: writer) # at least
        writer.close
        Heddle.run(ticker:) do
          read = Queue.new
          YieldingFiber.schedule do
            preempt_a_fiber
            read.push(Fiber.blocking { reader.read })
          end
          Process.wait(child)
          read.pop
        end
      end
      expect(text).to eq "late\n"
    end

    it "runs no Ruby code in the fiber that it preempts: #{ticker}" do
      line = __LINE__ + 4
      place = Heddle.run(ticker:) do
        done = false
        fiber = YieldingFiber.schedule do
          nil until done
        end
        # The fiber is inside its loop. A trap handler would be the innermost frame.
        fiber.backtrace.first.tap { done = true }
      end
      expect(place).to start_with("#{__FILE__}:#{line}:")
    end
  end

  it "without signals is a native thread" do
    threads = Heddle.run(ticker: :timerfd) do
      preempt_a_fiber
      Ticking.threads.values
    end
    expect(threads).to include("heddle ticker")
  end

  # In a process of its own, as yielding fibers without a scheduler leave their ticker's thread behind.
  it "with a signal has no native thread" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      Heddle.run(ticker: :signal) do
        YieldingFiber.schedule { nil }
        puts Dir["/proc/self/task/*/comm"].map { |file| File.read(file) }.grep(/ticker/)
        puts Fiber.scheduler.ticker
      end
    RUBY
    expect([output, errors]).to eq ["signal\n", ""]
  end

  it "uses a timerfd by default, as that interrupts no system call" do
    name = Heddle.run do
      preempt_a_fiber
      Fiber.scheduler.ticker
    end
    expect(name).to eq :timerfd
  end

  it "may differ between two schedulers" do
    names = %i[signal timerfd].map do |ticker|
      scheduled_thread(ticker:) do |scheduler|
        YieldingFiber.schedule { nil }
        scheduler.ticker
      end
    end
    expect(names.map(&:value)).to eq %i[signal timerfd]
  end
end
