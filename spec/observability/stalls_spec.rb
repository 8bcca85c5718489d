# frozen_string_literal: true

# Each program runs in a Ruby of its own, as receivers stay for the life of the process.
RSpec.describe "Heddle.on_stall" do
  let(:preamble) { <<~RUBY }
    require "heddle"
    require #{Computing::PATH.dump}
    include Computing
    $stalls, $ended = Thread::Queue.new, Thread::Queue.new
    #{Stalling::PROGRAM}
    def compute_until_reported = stall_until { $stalls.size.positive? }
    # On a busy machine other places may stall, too.
    def receive
      Heddle.on_stall do |stall|
        (stall.ended? ? $ended : $stalls) << stall if stall.backtrace.join.include?("compute_until_reported")
      end
    end
  RUBY

  it "lets a signal handler start a scheduler that watches for stalls" do
    expect(printed(<<~RUBY)).to eq ":ran\n"
      told = Queue.new
      trap("USR1") { told << Heddle.run(stall_after: 3600) { sleep(0) && :ran } }
      Process.kill(:USR1, Process.pid)
      p told.pop
    RUBY
  end

  it "is told of stalls, too, if something was raised before the watching thread had started" do
    expect(printed(<<~RUBY)).to eq "raised\n2\n"
      begun = 0
      trace = TracePoint.new(:call) do |event|
        next unless event.method_id == :watch

        begun += 1
        raise "raised" if begun == 1
      end
      trace.enable
      Fiber.set_scheduler(Heddle::Scheduler.new(stall_after: 3600))
      2.times do
        Fiber.schedule {}
      rescue => e
        puts e.message
      end
      trace.disable
      puts begun
    RUBY
  end

  # Computes until Heddle has written a line of this program's stall.
  until_a_line_is_written = <<~RUBY
    written = false
    watch_stderr { |line| written ||= line.match?(/at -e:\\d+/) }
    Heddle.run(stall_after: 0.02) { stall_until { written } }
  RUBY

  # What the program writes to stdout and stderr.
  def outcome(text)
    output, errors, status = run_ruby(preamble + text)
    expect(status).to be_success, errors
    [output, errors]
  end

  it "receives a stall while the fiber computes, with its backtrace" do
    expect(printed(<<~RUBY)).to match(/\A\[false, true, true\]\n.*compute_until_reported/)
      receive
      Heddle.run(stall_after: 0.02) do
        compute_until_reported
        stall = $stalls.pop
        p [stall.ended?, stall.duration >= 0.02, stall.thread == Thread.main]
        puts stall.backtrace.join(" ")
      end
    RUBY
  end

  it "receives the end of the stall, with its length and what was late" do
    expect(printed(<<~RUBY)).to eq "[true, true]\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep a_moment
        stall = nil
        # On a busy machine the two may have ended before the time slice that is reported.
        until stall&.late_fibers == 2
          2.times { Heddle.spin(background: true) { nil } }
          $stalls.clear
          compute_until_reported
          stall = $ended.pop
        end
        p [stall.duration >= $stalls.pop.duration, stall.latest_by.between?(0.001, stall.duration)]
      end
    RUBY
  end

  it "counts fibers whose sleeps have been over as late" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep a_moment
        # The machine may keep the thread from running: then the stall is noticed too early, or the sleepers are not late.
        stall = nil
        until stall&.late_fibers == 3
          # Once they sleep, none of them can wake until this fiber waits.
          3.times { Fiber.schedule { sleep 0.01 } } until Fiber.scheduler.inspect.include?("sleep: 3")
          $stalls.clear
          compute_until_reported
          stall = $ended.pop
        end
        p stall.latest_by.between?(0.001, stall.duration)
      end
    RUBY
  end

  it "tells the C method in which a thread waits without the GVL" do
    expect(printed(<<~RUBY)).to match(/\A(File#)?flock called at -e:\d+\n\z/)
      require "tempfile"
      Heddle.on_stall { |stall| $stalls << stall.to_s[/\\S*flock called at .*?:\\d+/] if stall.to_s.include?("flock") }
      Tempfile.create do |file|
        other = File.open(file.path)
        told = nil
        # On a busy machine the time slice may be reported before the fiber calls the method.
        until told
          file.flock(File::LOCK_EX)
          unlocking = Thread.new { $stalls.pop(timeout: 60).tap { file.flock(File::LOCK_UN) } }
          Heddle.run(stall_after: 0.02) { Fiber.new(blocking: true) { other.flock(File::LOCK_EX) }.resume }
          other.flock(File::LOCK_UN)
          told = unlocking.value
        end
        puts told
      end
    RUBY
  end

  it "is called for a fiber that keeps its thread in C code and with the GVL, afterwards" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.on_stall { |stall| $stalls << stall }
      Heddle.run(stall_after: 0.02) do
        Integer.sqrt(10**200_000) until $stalls.size.positive?
        p $stalls.pop.duration >= 0.02
      end
    RUBY
  end

  it "is not called for a computing fiber that is preempted when others are due" do
    expect(printed(<<~RUBY)).to eq "true\n"
      stalls = []
      Heddle.on_stall { |stall| stalls << stall }
      times = [Clock.now]
      Heddle.run(stall_after: 0.05, preempt: :all) do
        computing = Heddle.spin(background: true) { compute_for(0.3) }
        while computing.alive?
          sleep(0)
          times << Clock.now
        end
      end
      times << Clock.now
      # The machine may stop the thread: then no fiber runs. A time slice may lie in two of these spans.
      longest = times.each_cons(2).map { |one, other| other - one }.max
      p stalls.all? { |stall| stall.duration <= 2 * longest }
    RUBY
  end

  it "is not called while all fibers wait" do
    expect(printed(<<~RUBY)).to eq "true\n"
      stalls = []
      Heddle.on_stall { |stall| stalls << stall }
      scheduler = Heddle.run(stall_after: 0.05) { sleep(0.2) && Fiber.scheduler } # at least
      busy = scheduler.stats[:busy_duration]
      # The machine may stop the thread, which counts as busy.
      p stalls.all? { |stall| stall.duration <= busy }
    RUBY
  end

  it "reports stalls at the same place seldom, and counts them" do
    expect(printed(<<~RUBY)).to eq "true\n"
      counts = []
      elsewhere = false
      Heddle.on_stall do |stall|
        counts << stall.count if stall.backtrace.join.include?("compute_here")
        elsewhere = true if stall.backtrace.join.include?("compute_elsewhere")
      end
      def compute_here(done) = (Integer.sqrt(2) while done.empty?)
      def compute_elsewhere(done) = (Integer.sqrt(2) while done.empty?)
      # Ends the time slice each second at least, as compute_until_reported does.
      def stall_in(name)
        loop do
          done = Thread::Queue.new
          Thread.new do
            20.times { |times| sleep(0.05) && times.positive? && yield and break } # at least
            done << true
          end
          send(name, done)
          break if sleep(0) && yield
        end
      end
      Heddle.run(stall_after: 0.01) do
        began = Clock.now
        3.times { stall_in(:compute_here) { counts.any? } }
        # It is reported after the others.
        stall_in(:compute_elsewhere) { elsewhere }
        # Ten seconds later the same place is reported again.
        p counts == [1, 1] || Clock.now - began > 10
      end
    RUBY
  end

  it "may raise, which is reported, and other receivers are called" do
    output, errors = outcome(<<~RUBY)
      Heddle.on_stall { raise "broken" }
      receive
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      p $stalls.pop.class
    RUBY

    expect(output).to eq "Heddle::Stall\n"
    expect(errors).to include "heddle: a receiver of Heddle.on_stall raised RuntimeError: broken\n"
  end

  it "may block, which keeps no fiber from running" do
    expect(printed(<<~RUBY)).to eq "done\n"
      begun = Thread::Queue.new
      Heddle.on_stall { begun << true and sleep }
      Heddle.run(stall_after: 0.02) do
        Integer.sqrt(2) while begun.empty?
        sleep a_moment
        puts "done"
      end
    RUBY
  end

  it "is called for a stall at the end of the program" do
    # On a busy machine the computation may be two stalls.
    expect(printed(<<~RUBY)).to start_with "true\n"
      receive
      # Seconds for which the end of the program waits for reports.
      stalls = Heddle.const_get(:Stalls)
      stalls.send(:remove_const, :LAST_REPORTS)
      stalls.const_set(:LAST_REPORTS, 40)
      Heddle.on_stall { |stall| puts stall.ended? if stall.ended? && stall.backtrace.join.include?("compute_until") }
      Heddle.run(stall_after: 0.02) { compute_until_reported }
    RUBY
  end

  it "is called for a stall in which the scheduler is closed" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      Heddle.run(stall_after: 0.02) do
        Fiber.schedule do
          compute_until_reported
          Fiber.scheduler.close
        end
      end
      p $stalls.pop.duration >= 0.02
    RUBY
  end

  it "survives garbage collections at each allocation", timeout: 120 do
    # Without RubyGems there is less to mark.
    options = { env: { "RUBYOPT" => "--disable-gems" }, timeout: 100 }
    expect(run_ruby(preamble + <<~RUBY, **options)).to match ["true\n", "", be_success]
      receive
      GC.stress = true
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      GC.stress = false
      p $stalls.pop.duration >= 0.02
    RUBY
  end

  it "calls a receiver that was registered twice, until the second unsubscribe" do
    expect(printed(<<~RUBY)).to eq "[false, true, true]\n"
      called = Queue.new
      receiver = -> (stall) { called << stall }
      first, second = Array.new(2) { Heddle.on_stall(&receiver) }
      receive
      first.unsubscribe
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      p [first.subscribed?, second.subscribed?, called.size.positive?]
    RUBY
  end

  it "does not pass the parent's reports to a receiver in a forked child" do
    expect(printed(<<~RUBY)).to eq "false\n"
      begun, gate, parent = Queue.new, Queue.new, Process.pid
      received = Queue.new
      Heddle.on_stall do |stall|
        begun << stall
        gate.pop if Process.pid == parent
        received << stall
      end
      def compute_in_parent(begun) = (nil while begun.empty?)
      # The receiver keeps the report of the stall. That of its end waits.
      Heddle.run(stall_after: 0.02) { compute_in_parent(begun) }
      child = fork do
        Heddle.run(stall_after: 0.02) { nil while received.empty? }
        p received.pop.backtrace.join.include?("compute_in_parent")
      end
      Process.wait(child)
      gate.close
    RUBY
  end

  it "is replaced by a line on $stderr if there is no receiver" do
    _, errors = outcome(until_a_line_is_written)

    expect(errors).to match(/^heddle: #<Fiber:.*> has kept its thread for \d+\.\d+ s so far: .*at -e:\d+/)
  end

  it "publishes events for ActiveSupport after require \"heddle/stalls/notifications\"" do
    outcome, _, status = run_ruby(preamble + <<~RUBY)
      begin
        require "active_support"
      rescue LoadError
        exit 2
      end
      require "heddle/stalls/notifications"
      ActiveSupport::Notifications.subscribe("stall.heddle") { |name, *, payload| $stalls << [name, payload] }
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      name, payload = $stalls.pop
      p [name, payload.fetch(:duration) >= 0.02]
    RUBY
    skip "ActiveSupport is not installed" if status.exitstatus == 2

    expect(outcome).to eq "[\"stall.heddle\", true]\n"
  end

  it "is called in a forked child, too" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep a_moment
        pid = fork do
          Heddle.run(**(Fiber.scheduler ? {} : { stall_after: 0.02 })) do
            sleep a_moment
            compute_until_reported
            p $stalls.pop.duration >= 0.02
          end
        end
        Process.wait(pid)
      end
    RUBY
  end

  it "leaves no thread behind when the scheduler is closed" do
    expect(printed(<<~RUBY)).to eq "[\"heddle stall watch\"]\n[]\n"
      watching = -> { Thread.list.filter_map(&:name).grep(/stall/) }
      Heddle.run(stall_after: 3600) do
        sleep 0.001 while watching.call.empty?
        p watching.call
      end
      Thread.pass until watching.call.empty?
      p watching.call
    RUBY
  end

  it "starts no thread without stall_after:" do
    expect(printed(<<~RUBY)).to eq "1\n"
      Heddle.run { sleep(a_moment) && p(Thread.list.size) }
    RUBY
  end

  it "needs a block" do
    expect { Heddle.on_stall }.to raise_error(ArgumentError, /Heddle\.on_stall.*block/)
  end

  [0, 0.001, -1, 3601, Float::NAN, "1", :never].each do |stall_after|
    it "refuses stall_after: #{stall_after.inspect}, and names the range" do
      expect { Heddle::Scheduler.new(stall_after:) }
        .to raise_error(ArgumentError, "stall_after: must be seconds from 0.01 to 3600, not #{stall_after.inspect}")
    end
  end

  it "stops calling a receiver after its unsubscribe, and calls the others" do
    expect(printed(<<~RUBY)).to eq "[true, 0, false]\n"
      count = 0
      subscription = Heddle.on_stall { count += 1 }
      # Receivers are called in the order of their registration.
      receive
      subscribed = subscription.subscribed?
      subscription.unsubscribe
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      p [subscribed, count, subscription.subscribed?]
    RUBY
  end

  it "is replaced by a line on $stderr again after the unsubscribe of the last receiver" do
    output, errors = outcome(<<~RUBY)
      2.times.map { Heddle.on_stall { puts "received" } }.each(&:unsubscribe)
      #{until_a_line_is_written}
    RUBY

    expect([output, errors]).to match(["", /^heddle: #<Fiber:.*> has kept its thread/])
  end
end
