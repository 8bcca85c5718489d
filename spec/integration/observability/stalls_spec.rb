# frozen_string_literal: true

# Each program runs in a Ruby of its own, as receivers stay for the life of the process.
RSpec.describe "Heddle.on_stall" do
  program = <<~RUBY
    require "heddle"
    $stalls = Thread::Queue.new
    def compute_for(seconds)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      Integer.sqrt(2) until Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
    end
    # Computes until the stall has been reported.
    def compute_until_reported = (Integer.sqrt(2) while $stalls.empty?)
    def receive = Heddle.on_stall { |stall| $stalls << stall }
  RUBY

  define_method(:outcome) do |text|
    output, errors, status = run_ruby(program + text)
    expect(status).to be_success, errors
    [output, errors]
  end

  define_method(:printed) do |text|
    output, errors = outcome(text)
    expect(errors).to eq ""
    output
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
    expect(printed(<<~RUBY)).to eq "[true, true, 2, true]\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep 0.001
        2.times { Heddle.spin { nil } }
        compute_for(0.3)
        sleep(0)
        stall = $stalls.pop
        stall = $stalls.pop until stall.ended?
        p [stall.ended?, stall.duration >= 0.3, stall.late_fibers, stall.latest_by >= 0.29]
      end
    RUBY
  end

  it "counts fibers whose sleeps have been over as late" do
    expect(printed(<<~RUBY)).to eq "[3, true]\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep 0.001
        3.times { Fiber.schedule { sleep 0.05 } }
        compute_for(0.3)
        sleep(0)
        stall = $stalls.pop
        stall = $stalls.pop until stall.ended?
        p [stall.late_fibers, stall.latest_by.between?(0.001, stall.duration)]
      end
    RUBY
  end

  it "tells the C method in which a thread waits without the GVL" do
    expect(printed(<<~RUBY)).to match(/\A(File#)?flock called at -e:\d+\n\z/)
      receive
      require "tempfile"
      Tempfile.create do |file|
        file.flock(File::LOCK_EX)
        unlocking = Thread.new { $stalls.pop.then { |stall| $found = stall } && file.flock(File::LOCK_UN) }
        Heddle.run(stall_after: 0.02) { Fiber.new(blocking: true) { File.open(file.path).flock(File::LOCK_EX) }.resume }
        unlocking.join
      end
      puts $found.to_s[/\\S+ called at .*?:\\d+/]
    RUBY
  end

  it "is called for a fiber that keeps its thread in C code and with the GVL, afterwards" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      Heddle.run(stall_after: 0.02) do
        Integer.sqrt(10**200_000) until $stalls.size.positive?
        p $stalls.pop.duration >= 0.02
      end
    RUBY
  end

  it "is not called for a computing fiber that is preempted when others are due" do
    expect(printed(<<~RUBY)).to eq "0\n"
      receive
      Heddle.run(stall_after: 0.2, preempt: :all) do
        Heddle.await(Heddle.spin { compute_for(0.6) })
        p $stalls.size
      end
    RUBY
  end

  it "is not called while all fibers wait" do
    expect(printed(<<~RUBY)).to eq "0\n"
      receive
      Heddle.run(stall_after: 0.05) { sleep(0.2) && p($stalls.size) }
    RUBY
  end

  it "reports stalls at the same place seldom, and counts them" do
    expect(printed(<<~RUBY)).to eq "[1, 1]\n"
      receive
      Heddle.run(stall_after: 0.01) do
        3.times { compute_for(0.3) && sleep(0.001) }
        first, second = Array.new(2) { $stalls.pop(timeout: 5) }
        p [first, second].map(&:count)
        $stalls.empty? or abort "more reports"
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
        sleep 0.01
        puts "done"
      end
    RUBY
  end

  it "is called for a stall at the end of the program" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.on_stall { |stall| puts stall.ended? if stall.ended? }
      Heddle.run(stall_after: 0.02) { compute_for(0.1) }
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

  it "survives garbage collections at each allocation" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      GC.stress = true
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      GC.stress = false
      p $stalls.pop.duration >= 0.02
    RUBY
  end

  it "is replaced by a line on $stderr if there is no receiver" do
    _, errors = outcome(<<~RUBY)
      written = Thread::Queue.new
      log = Object.new
      log.define_singleton_method(:write) { |line| STDERR.write(line).tap { written << line } }
      $stderr = log
      Heddle.run(stall_after: 0.02) { Integer.sqrt(2) while written.empty? }
    RUBY

    expect(errors).to match(/^heddle: #<Fiber:.*> has kept its thread for \d\.\d+ s so far: .*at -e:\d+/)
  end

  it "publishes events for ActiveSupport after require \"heddle/stalls/notifications\"" do
    skip "ActiveSupport is not installed" unless outcome(<<~RUBY).first == "found\n"
      begin
        require "active_support"
        puts "found"
      rescue LoadError
        puts "missing"
      end
    RUBY

    expect(printed(<<~RUBY)).to eq "[\"stall.heddle\", true]\n"
      require "active_support"
      require "heddle/stalls/notifications"
      ActiveSupport::Notifications.subscribe("stall.heddle") { |name, *, payload| $stalls << [name, payload] }
      Heddle.run(stall_after: 0.02) { compute_until_reported }
      name, payload = $stalls.pop
      p [name, payload.fetch(:duration) >= 0.02]
    RUBY
  end

  it "is called in a forked child, too" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      Heddle.run(stall_after: 0.02) do
        sleep 0.001
        pid = fork do
          Heddle.run(**(Fiber.scheduler ? {} : { stall_after: 0.02 })) do
            sleep 0.001
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
      Heddle.run(stall_after: 0.02) { sleep(0.001) && p(watching.call) }
      Thread.pass until watching.call.empty?
      p watching.call
    RUBY
  end

  it "starts no thread without stall_after:" do
    expect(printed(<<~RUBY)).to eq "1\n"
      Heddle.run { sleep(0.001) && p(Thread.list.size) }
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
end
