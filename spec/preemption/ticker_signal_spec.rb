# frozen_string_literal: true

RSpec.describe "The signal of a ticker" do
  include Libraries

  computing = File.expand_path("../support/computing", __dir__)
  # Every program below begins with this.
  prelude = <<~RUBY
    require "heddle"
    $stdout.sync = true
    require "#{computing}"
    include Computing
  RUBY

  define_method(:program) do |source, &block|
    output, errors, status = run_ruby(prelude + source, &block)
    [output, errors, status.termsig || status.exitstatus]
  end

  usr2 = Signal.list.fetch("USR2")

  it "is refused if it has a handler, which is kept" do
    expect(program(<<~RUBY)).to eq ["ArgumentError true\nhandled\n", "", 0]
      trap("USR2") { puts "handled" }
      begin
        Heddle.run(ticker: :signal) { YieldingFiber.schedule { puts "not reached" } }
      rescue ArgumentError => e
        puts "\#{e.class} \#{e.message.match?(/USR2.*handler.*timerfd/)}"
      end
      Process.kill(:USR2, Process.pid)
      sleep(a_moment)
    RUBY
  end

  %w[IGNORE SIG_IGN EXIT].each do |handler|
    it "is refused if it is set to #{handler}, which is kept" do
      expect(program(<<~RUBY)).to match [/\AArgumentError (nil|IGNORE|SIG_IGN|EXIT)\n\z/, "", 0]
        trap("USR2", #{handler.inspect})
        begin
          Heddle.run(ticker: :signal) { YieldingFiber.schedule { puts "not reached" } }
        rescue ArgumentError => e
          puts "\#{e.class} \#{trap("USR2", "DEFAULT") || "nil"}"
        end
      RUBY
    end
  end

  it "is refused where YieldingFiber.schedule is called, and the calling fiber continues" do
    expect(program(<<~RUBY)).to eq ["ArgumentError\nslept\n", "", 0]
      Heddle.run(ticker: :signal) do
        trap("USR2") { }
        begin
          YieldingFiber.schedule { puts "not reached" }
        rescue ArgumentError => e
          puts e.class
        end
        sleep(a_moment)
        puts "slept"
      end
    RUBY
  end

  it "is left to its handler by the ticker :auto, which then uses timerfd" do
    expect(program(<<~RUBY)).to eq ["timerfd\nhandled\n", "", 0]
      trap("USR2") { puts "handled" }
      Heddle.run do
        preempt_a_fiber
        puts Fiber.scheduler.ticker
        Process.kill(:USR2, Process.pid)
        sleep(a_moment)
      end
    RUBY
  end

  it "stays ignored with the ticker :auto" do
    expect(program(<<~RUBY)).to eq ["timerfd\nalive\n", "", 0]
      trap("USR2", "IGNORE")
      Heddle.run do
        preempt_a_fiber
        puts Fiber.scheduler.ticker
      end
      Process.kill(:USR2, Process.pid)
      puts "alive"
    RUBY
  end

  it "can be chosen" do
    expect(program(<<~RUBY)).to eq ["signal\nhandled\n", "", 0]
      trap("USR2") { puts "handled" }
      Heddle.run(ticker: :signal, signal: "PROF") do
        preempt_a_fiber
        puts Fiber.scheduler.ticker
        Process.kill(:USR2, Process.pid)
        sleep(a_moment)
      end
    RUBY
  end

  it "ends the process again once the scheduler is closed" do
    expect(program(<<~RUBY)).to eq ["ticked\n", "", usr2]
      Heddle.run(ticker: :signal) { preempt_a_fiber }
      puts "ticked"
      Process.kill(:USR2, Process.pid)
      sleep
    RUBY
  end

  it "is Ruby's default again once the scheduler is closed" do
    expect(program(<<~RUBY)).to eq ["\"DEFAULT\"\n", "", 0]
      Heddle.run(ticker: :signal) { preempt_a_fiber }
      p trap("USR2", "IGNORE")
    RUBY
  end

  it "is used until the last scheduler is closed" do
    expect(program(<<~RUBY)).to eq ["ticks\n", "", usr2]
      stop = Queue.new
      thread = Thread.new { Heddle.run(ticker: :signal) { preempt_a_fiber; stop.pop; preempt_a_fiber; puts "ticks" } }
      Heddle.run(ticker: :signal) { preempt_a_fiber }
      stop.push(true)
      thread.join
      Process.kill(:USR2, Process.pid)
      sleep
    RUBY
  end

  it "ends the process when another process sends it while it ticks, as it did before" do
    expect(program(<<~RUBY)).to eq ["ticking\n", "", usr2]
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        puts "ticking"
        YieldingFiber.schedule { loop { Integer.sqrt(2) } }
        Process.kill(:USR2, Process.pid)
      end
    RUBY
  end

  it "may be trapped while it ticks: the handler gets the signals, and ticks continue by timerfd" do
    expect(program(<<~RUBY)).to eq ["signal\n\"DEFAULT\"\ntimerfd\nhandled\ngoes on\n", "", 0]
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        puts Fiber.scheduler.ticker
        p trap("USR2") { puts "handled" }
        preempt_a_fiber
        puts Fiber.scheduler.ticker
        Process.kill(:USR2, Process.pid)
        sleep(a_moment)
        preempt_a_fiber
        puts "goes on"
      end
    RUBY
  end

  it "may be trapped in the CPU-bound fiber, which is preempted further" do
    expect(program(<<~RUBY)).to eq ["true\ntrue\n", "", 0]
      Heddle.run(ticker: :signal) do
        done = handled = false
        first = nil
        fiber = YieldingFiber.schedule do
          Integer.sqrt(2) until done
          first = Signal.trap("USR2") { handled = true }
          done = false
          Integer.sqrt(2) until done
        end
        done = true
        sleep(0) until first
        Process.kill(:USR2, Process.pid)
        sleep(0) until handled
        done = true
        sleep(0) while fiber.alive?
        puts handled, Fiber.scheduler.ticker == :timerfd
      end
    RUBY
  end

  it "may be trapped by another thread: all tickers change to timerfd" do
    expect(program(<<~RUBY)).to eq ["[:timerfd, :timerfd]\nhandled\n", "", 0]
      ready, go = Queue.new, Queue.new
      threads = Array.new(2) do
        Thread.new do
          Heddle.run(ticker: :signal) do
            preempt_a_fiber
            ready.push(true)
            go.pop
            preempt_a_fiber
            Fiber.scheduler.ticker
          end
        end
      end
      2.times { ready.pop }
      # A signal of a deleted timer may still be on its way.
      sent = false
      trap("USR2") { puts "handled" if sent }
      2.times { go.push(true) }
      p threads.map(&:value)
      sent = true
      Process.kill(:USR2, Process.pid)
      sleep(a_moment)
    RUBY
  end

  it "keeps the handler that was set while it ticked, after the scheduler is closed" do
    expect(program(<<~RUBY)).to eq ["handled\n", "", 0]
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        trap("USR2") { puts "handled" }
      end
      Process.kill(:USR2, Process.pid)
      sleep(a_moment)
    RUBY
  end

  it "doesn't change traps of other signals" do
    expect(program(<<~RUBY)).to eq ["handled\nsignal\n", "", 0]
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        trap("USR1") { puts "handled" }
        Process.kill(:USR1, Process.pid)
        sleep(a_moment)
        puts Fiber.scheduler.ticker
      end
    RUBY
  end

  it "doesn't change the errors of trap" do
    expect(program(<<~RUBY)).to eq ["ArgumentError\nArgumentError\n\"DEFAULT\"\n", "", 0]
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        [["NOPE"], ["SEGV"]].each { |arguments| trap(*arguments) { } rescue puts $!.class }
        p trap("SIGUSR1") { }
      end
    RUBY
  end

  it "is neither blocked nor ignored in a program that the process starts" do
    output, errors, status = program(<<~RUBY)
      Heddle.run(ticker: :signal) do
        preempt_a_fiber
        system(%q(grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status))
        exec(%q(kill -USR2 $$; echo survived))
      end
    RUBY
    expect([errors, status]).to eq ["", usr2]
    sets = output.lines.to_h(&:split).transform_values { |set| set.hex[usr2 - 1] }
    expect(sets).to eq("SigBlk:" => 0, "SigIgn:" => 0, "SigCgt:" => 0)
  end

  it "runs no Ruby code in the fiber that a tick interrupts, so locks work there" do
    expect(program(<<~RUBY)).to eq ["-e:#{prelude.lines.size + 4}\n:locked\n", "", 0]
      Heddle.run(ticker: :signal) do
        done = locked = nil
        fiber = YieldingFiber.schedule do
          nil until done
          locked = Mutex.new.synchronize { :locked }
        end
        puts fiber.backtrace.first[/\\A-e:\\d+/]
        done = true
        sleep(0) while fiber.alive?
        p locked
      end
    RUBY
  end

  it "continues to tick when another process sends it, if its default action is to be ignored" do
    expect(program(<<~RUBY)).to eq ["true\n", "", 0]
      Heddle.run(ticker: :signal, signal: "URG", quantum: 0.001) do
        over = false
        2.times { YieldingFiber.schedule { Integer.sqrt(2) until over } }
        2.times { system("kill", "-URG", Process.pid.to_s) }
        before = Fiber.scheduler.stats[:run_queue][:preemptions_count]
        sleep(0.001) until Fiber.scheduler.stats[:run_queue][:preemptions_count] > before + 3
        p over = true
      end
    RUBY
  end

  it "survives another library's timer that sends it", :regression do
    skip_or_fail_without("fiddle") unless system(RbConfig.ruby, "-e", 'require "fiddle"', err: File::NULL)

    expect(program(<<~RUBY)).to eq ["true\n", "", 0]
      require "fiddle"
      pointer = Fiddle::TYPE_VOIDP
      function = ->(name, types) { Fiddle::Function.new(Fiddle.dlopen(nil)[name], types, Fiddle::TYPE_INT) }
      Heddle.run(preempt: :all, ticker: :signal, signal: "URG") do
        id = [0].pack("Q")
        # What the signal carries is no address.
        event = [12_345, Signal.list.fetch("URG"), 0].pack("QlL").ljust(64, "\\0")
        function.call("timer_create", [Fiddle::TYPE_INT, pointer, pointer]).call(Process::CLOCK_MONOTONIC, event, id)
        timer = id.unpack1("Q")
        set = function.call("timer_settime", [pointer, Fiddle::TYPE_INT, pointer, pointer])
        set.call(timer, 0, [0, 0, 0, 1].pack("q4"), nil)
        left = [0, 0, 0, 1].pack("q4")
        get = function.call("timer_gettime", [pointer, pointer])
        # All zero when the timer has expired.
        get.call(timer, left) until left.unpack("q4").all?(0)
        p true
      end
    RUBY
  end

  it "is not used by default, so that sleeps of C libraries are not cut short" do
    skip_or_fail_without("fiddle") unless system(RbConfig.ruby, "-e", 'require "fiddle"', err: File::NULL)

    expect(program(<<~RUBY)).to eq ["true\n", "", 0]
      require "fiddle"
      usleep = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
      Heddle.run(preempt: :all) do
        over = false
        Fiber.schedule { Integer.sqrt(2) until over }
        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        usleep.call(100_000)
        p Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun >= 0.1
        over = true
      end
    RUBY
  end
end
