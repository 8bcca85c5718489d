# frozen_string_literal: true

RSpec.describe "A scheduler beside threads and signals", :regression do
  interrupted = Signal.list.fetch("INT")

  describe "on Ctrl-C in a fiber while the root is still in Fiber.schedule" do
    it "ends Heddle.run, and runs the ensure of the other fibers" do
      output, _errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Heddle.run do
          Fiber.schedule { Process.kill(:INT, Process.pid); loop {} }
          sleep
        ensure
          puts "ensured"
        end
        puts "not reached"
      RUBY
      expect([output, status.termsig]).to eq ["ensured\n", interrupted]
    end

    it "raises the Interrupt out of Heddle.run, which leaves no scheduler" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        begin
          Heddle.run do
            Fiber.schedule { Process.kill(:INT, Process.pid); loop {} }
            sleep
          end
        rescue Interrupt
          puts "rescued, \#{Fiber.scheduler.inspect} is left"
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["rescued, nil is left\n", "", true]
    end
  end

  describe "with IO#pwrite in many fibers" do
    # Ruby 3.3 and 3.4 call the hook io_pwrite without the GVL. Without a workaround Ruby's timer thread loops for
    # ever, and no timeout of a thread expires any more.
    it "keeps other threads' timers running" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        require "tempfile"
        Tempfile.create do |file|
          sleeping = Thread.new { sleep }
          Heddle.run do
            100.times { |i| Fiber.schedule { 20.times { |j| file.pwrite("x", 20 * i + j) } } }
          end
          timed = Thread.new { sleep(a_moment) }
          puts "joined \#{!timed.join(60).nil?}, waited \#{sleeping.join(0.01).nil?}, size \#{file.size}"
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["joined true, waited true, size 2000\n", "", true]
    end
  end

  describe "closed from another thread" do
    def close_from_a_thread(scheduler)
      Thread.new do
        scheduler.close
        :closed
      rescue FiberError => e
        e.class
      end.value
    end

    it "raises FiberError" do
      expect(Heddle.run { close_from_a_thread(Fiber.scheduler) }).to be FiberError
    end

    it "leaves the thread's scheduler and its fibers as they were" do
      events = []
      kept = Heddle.run do
        scheduler = Fiber.scheduler
        gate = Queue.new
        Fiber.schedule { events << gate.pop }
        close_from_a_thread(scheduler)
        gate.push(:popped)
        until_others_wait
        Fiber.scheduler.equal?(scheduler)
      end
      expect([kept, events]).to eq [true, [:popped]]
    end

    it "doesn't disturb a thread that waits for its fibers at its end" do
      gate = Queue.new
      schedulers = Queue.new
      thread = scheduled_thread do |scheduler|
        Fiber.schedule { gate.pop }
        schedulers.push(scheduler)
      end
      until_asleep(thread)
      close_from_a_thread(schedulers.pop)
      still_there = thread.alive?
      gate.push(:open)
      expect([still_there, thread.join(60)]).to eq [true, thread]
    end
  end

  describe "in a program that never uses IO::Buffer" do
    reading = <<~RUBY
      require "heddle"
      Heddle.run do
        reader, writer = IO.pipe
        Fiber.schedule { writer.write("x" * 100_000) && writer.close }
        puts reader.read.size
        File.write(File::NULL, "x")
      end
    RUBY

    it "causes no warning about experimental features" do
      output, errors, = run_ruby(reading, env: { "RUBYOPT" => "-W:experimental" })
      expect([output, errors]).to eq ["100000\n", ""]
    end

    it "causes no warning about experimental features with all warnings enabled" do
      _output, errors, = run_ruby(reading, env: { "RUBYOPT" => "-w" })
      expect(errors).not_to match(/experimental/)
    end

    it "keeps the program's choice of warnings" do
      output, = run_ruby(<<~RUBY, env: { "RUBYOPT" => "-W:experimental" })
        require "heddle"
        puts Warning[:experimental]
      RUBY
      expect(output).to eq "true\n"
    end
  end
end

# Known traps of the hook interface. The tag `trap:` is the number of the trap. These have no example here:
#
#   trap | why
#   -----+-----------------------------------------------------------------------------------------------------------
#     43 | each fiber has masks of its own: spec/preemption/interrupt_masks_spec.rb
#     45 | Ruby's own: Thread#wakeup asks no scheduler
RSpec.describe "A scheduler under signals and interrupts" do
  around do |example|
    previous = trap("USR2", "DEFAULT")
    example.run
  ensure
    trap("USR2", previous)
  end

  it "handles a signal while it is asleep in the kernel", trap: 41 do
    main = Thread.current
    handled = Heddle.run do
      queue = Queue.new
      trap("USR2") { queue.push(:handled) }
      sender = Thread.new do
        until_asleep(main)
        Process.kill(:USR2, Process.pid)
      end
      queue.pop.tap { sender.join }
    end
    expect(handled).to eq :handled
  end

  it "handles a signal while fibers sleep, and none of them wakes early", trap: 41 do
    main = Thread.current
    took = nil
    handled = 0
    trap("USR2") { handled += 1 }
    sender = Thread.new do
      until_asleep(main)
      5.times do |number|
        Process.kill(:USR2, Process.pid)
        Thread.pass until handled > number
      end
    end
    Heddle.run { took = seconds { sleep(0.05) } } # at least
    sender.join
    expect([handled, took]).to match [5, be >= 0.05]
  end

  it "lets a handler sleep", trap: 42 do
    order = []
    Heddle.run do
      queue = Queue.new
      trap("USR2") do
        order << :begun
        sleep(a_moment)
        order << :slept
        queue.push(true)
      end
      Process.kill(:USR2, Process.pid)
      queue.pop
    end
    expect(order).to eq %i[begun slept]
  end

  it "doesn't mask interrupts while fibers run: the root fiber gets them", trap: 44 do
    stop = Class.new(StandardError)
    ready = Queue.new
    thread = Thread.new do
      Heddle.run do
        ready.push(true)
        loop { nil }
      rescue stop
        :interrupted_a_fiber
      end
    rescue stop
      :interrupted
    end
    ready.pop
    thread.raise(stop)
    expect(thread.value).to eq :interrupted
  end

  it "lets Ctrl-C end a program with a CPU-bound fiber", trap: 44 do
    _output, _errors, status = run_ruby(<<~RUBY)
      require "heddle"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Thread.new { Process.kill(:INT, Process.pid) }
      Fiber.schedule { loop {} }
    RUBY
    expect(status.termsig).to eq Signal.list.fetch("INT")
  end

  it "reports no pending interrupt to a fiber", trap: 44 do
    trap("USR2") { :handled }
    pending = Heddle.run do
      Process.kill(:USR2, Process.pid)
      sleep(a_moment)
      Thread.pending_interrupt?
    end
    expect(pending).to be false
  end
end
