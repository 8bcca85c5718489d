# frozen_string_literal: true

RSpec.describe "A scheduler beside threads and signals" do
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
          timed = Thread.new { sleep(0.01) }
          puts "joined \#{!timed.join(10).nil?}, waited \#{sleeping.join(0.01).nil?}, size \#{file.size}"
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
        sleep(0.001)
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
      expect([still_there, thread.join(10)]).to eq [true, thread]
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
