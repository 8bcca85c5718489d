# frozen_string_literal: true

# What signals and other threads raise in a thread, while one of its fibers computes and rescues every exception.
RSpec.describe "The root fiber of a thread with CPU-bound fibers" do
  options = { "with the ticker signal" => "preempt: :all, ticker: :signal",
              "with the ticker timerfd" => "preempt: :all, ticker: :timerfd",
              "without preemption" => "preempt: :none" }

  # The CPU-bound fiber prints the exceptions that it rescues.
  prelude = <<~RUBY
    # Under `nohup` Ruby ignores the signal.
    trap("HUP", "DEFAULT")
    require "heddle"
    $stdout.sync = true
    def send_signal(name)
      Thread.new { Process.kill(name, Process.pid) }
    end
    def compute
      loop { Integer.sqrt(2) }
    rescue Exception => e
      puts e.class unless e.is_a?(Heddle::Stop)
    end
  RUBY

  options.each do |way, arguments|
    %w[INT TERM HUP USR1].each do |name|
      it "gets SIG#{name}, which ends the process, #{way}" do
        output, _errors, status = run_ruby(<<~RUBY)
          #{prelude}
          Heddle.run(#{arguments}) do
            Fiber.schedule { begin; sleep; ensure; puts "ensured"; end }
            Fiber.schedule { send_signal("#{name}"); compute }
            sleep
          end
          puts "not reached"
        RUBY
        expect([output, status.termsig]).to eq ["ensured\n", Signal.list.fetch(name)]
      end
    end

    it "gets SIGTERM though the fiber masks all exceptions, #{way}" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Heddle.run(#{arguments}) do
          over = false
          Fiber.schedule { begin; sleep; ensure; over = true; end }
          Thread.handle_interrupt(Exception => :never) do
            send_signal("TERM")
            Integer.sqrt(2) until over
          end
          puts "through"
        end
      RUBY
      expect([output, status.termsig]).to eq ["through\n", Signal.list.fetch("TERM")]
    end

    it "gets SIGTERM while a blocking fiber computes, #{way}" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Heddle.run(#{arguments}) do
          Fiber.new(blocking: true) { send_signal("TERM"); compute }.resume
        end
      RUBY
      expect([output, status.termsig]).to eq ["", Signal.list.fetch("TERM")]
    end

    it "gets SIGTERM while a generator computes, #{way}" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Heddle.run(#{arguments}) do
          Enumerator.new { send_signal("TERM"); compute }.next
        end
      RUBY
      expect([output, status.termsig]).to eq ["", Signal.list.fetch("TERM")]
    end

    it "gets SIGTERM without Heddle.run, #{way}" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Fiber.set_scheduler(Heddle::Scheduler.new(#{arguments}))
        Fiber.schedule { send_signal("TERM"); compute }
      RUBY
      expect([output, status.termsig]).to eq ["", Signal.list.fetch("TERM")]
    end

    it "gets the exit of a signal handler, #{way}" do
      output, errors, status = run_ruby(<<~RUBY)
        #{prelude}
        trap("TERM") { exit(3) }
        Heddle.run(#{arguments}) do
          Fiber.schedule { begin; sleep; ensure; puts "ensured"; end }
          send_signal("TERM")
          compute
        end
      RUBY
      expect([output, errors, status.exitstatus]).to eq ["ensured\n", "", 3]
    end

    it "gets Thread#raise and Thread#kill on another thread, #{way}" do
      output, errors, = run_ruby(<<~RUBY)
        #{prelude}
        %i[raise kill].each do |method|
          begun = Queue.new
          thread = Thread.new do
            Heddle.run(#{arguments}) { begun.push(true); compute }
          rescue RuntimeError
            puts "raised"
          end
          begun.pop
          thread.public_send(method)
          thread.join
        end
      RUBY
      expect([output, errors]).to eq ["raised\n", ""]
    end

    it "continues when it masks the exception, and the interrupted fiber runs before all others, #{way}" do
      output, errors, = run_ruby(<<~RUBY)
        #{prelude}
        begun = Queue.new
        thread = Thread.new do
          Thread.handle_interrupt(RuntimeError => :never) do
            Heddle.run(#{arguments}) do
              begun.push(true)
              Thread.pass until Thread.pending_interrupt?
              Integer.sqrt(2)
              puts "through"
            end
          end
        rescue RuntimeError
          puts "raised"
        end
        begun.pop
        thread.raise
        thread.join
      RUBY
      expect([output, errors]).to eq ["through\nraised\n", ""]
    end
  end

  it "leaves the handlers that trap returns unchanged" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      mine = proc { nil }
      trap("HUP", mine)
      Heddle.run do
        sleep(0)
        p trap("TERM", "DEFAULT"), trap("HUP", "IGNORE").equal?(mine), trap("HUP", mine), trap("INT", "EXIT")
        p trap("INT", "DEFAULT"), trap("WINCH", "DEFAULT")
      end
      p trap("HUP", "DEFAULT").equal?(mine), trap("INT", "DEFAULT")
    RUBY
    expect([output.split("\n"), errors])
      .to eq [['"DEFAULT"', "true", '"IGNORE"', '"DEFAULT"', '"EXIT"', '"SYSTEM_DEFAULT"', "true", '"DEFAULT"'], ""]
  end

  # As `ConnectionPool#with` has it.
  lets_through = lambda do |&block|
    Thread.handle_interrupt(IndexError => :never) { Thread.handle_interrupt(IndexError => :immediate, &block) }
  end

  { "a fiber that computes" => [->(&block) { block.call }, lets_through],
    "the caller of Heddle.run" => [lets_through, ->(&block) { block.call }] }.each do |name, (around, within)|
    it "gets what another thread raises while #{name} lets that through" do
      begun = Queue.new
      gate = Queue.new
      has_ended = false
      thread = Thread.new do
        around.call do
          Heddle.run do
            Heddle.spin do
              within.call { begun.push(true) && (Integer.sqrt(2) until has_ended) }
            rescue IndexError
              gate.push(:raised_in_fiber)
            end
            gate.pop
          ensure
            has_ended = true
          end
        rescue IndexError
          :raised_in_root
        end
      end
      begun.pop
      thread.raise(IndexError)
      expect(thread.value).to eq :raised_in_root
    end
  end

  it "doesn't get the Timeout of a block in Fiber.blocking" do
    outcome = Heddle.run do
      require "timeout"
      Fiber.blocking { Timeout.timeout(0.01) { loop { Integer.sqrt(2) } } }
    rescue Timeout::Error
      :timed_out
    end
    expect(outcome).to eq :timed_out
  end

  it "gets its own Timeout while a fiber computes in Fiber.blocking" do
    require "timeout"
    outcome = Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      ended = in_fiber = nil
      gate = Queue.new
      Fiber.schedule do
        gate.pop
        Fiber.blocking { Integer.sqrt(2) until ended }
      rescue Exception => e # rubocop:disable Lint/RescueException -- Timeout's own
        in_fiber = e
      end
      begin
        Timeout.timeout(0.01) { gate.push(true) && Fiber.scheduler.run }
      rescue Timeout::Error
        [:timed_out, in_fiber]
      ensure
        ended = true
        gate.push(true)
      end
    end.value
    expect(outcome).to eq [:timed_out, nil]
  end

  it "gets nothing of a time limit that is raised in a fiber just as another thread raises in the root" do
    rescued = []
    Thread.new do
      root = Thread.current
      event_come = Queue.new
      has_raised = false
      Thread.new do
        next unless event_come.pop

        root.raise("in the root")
        has_raised = true
      end
      Fiber.set_scheduler(Heddle::Scheduler.new(preempt: :all))
      trace = TracePoint.new(:c_return) do |event|
        next unless event.method_id == :to_s && event.self.is_a?(Heddle.const_get(:Stop))

        trace.disable
        event_come << true
        Thread.pass until has_raised
      end
      trace.enable
      Fiber.schedule do
        # Some of them are raised at a tick.
        20.times do
          Heddle.cancel_after(0.001) { loop { Integer.sqrt(2) } }
        rescue Heddle::TimeoutError => e
          rescued << e.class
        end
      end
      Fiber.scheduler.run
    rescue Exception => e # rubocop:disable Lint/RescueException -- Heddle's own is none of a program's
      rescued << e.message
    ensure
      trace.disable
      event_come.close
    end.join
    expect(rescued.uniq).to eq [Heddle::TimeoutError]
  end
end
