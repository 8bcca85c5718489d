# frozen_string_literal: true

RSpec.describe "Interrupts" do
  # Sends SIGINT as Ctrl-C does, once the main thread waits.
  ctrl_c = <<~RUBY
    require "heddle"
    require #{Settling::PATH.dump}
    $stdout.sync = true
    def ctrl_c
      Thread.new do
        Settling.one(Thread.main)
        Process.kill(:INT, Process.pid)
      end
    end
  RUBY
  interrupted = Signal.list.fetch("INT")

  describe "Ctrl-C" do
    it "ends a program whose fibers all wait, and runs their ensure" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        Heddle.run do
          2.times { Fiber.schedule { begin; sleep; ensure; puts "ensured"; end } }
          ctrl_c
          begin; sleep; ensure; puts "ensured"; end
        end
        puts "not reached"
      RUBY
      expect([output, status.termsig]).to eq ["ensured\n" * 3, interrupted]
    end

    it "is raised out of Heddle.run, and not in a waiting fiber" do
      output, errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        begin
          Heddle.run do
            Fiber.schedule { begin; sleep; rescue Interrupt; puts "in a fiber"; end }
            ctrl_c
            begin; sleep; rescue Interrupt; puts "in the block"; end
          end
        rescue Interrupt
          puts "rescued, \#{Fiber.scheduler.inspect} is left"
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["rescued, nil is left\n", "", true]
    end

    # Ruby handles signals between the extension's methods for a fiber's beginning and end, and the block.
    %w[begin_block end_block fail_block].each do |method|
      it "is raised out of Heddle.run, and in no fiber, if it comes at the end of #{method}" do
        output, _errors, status = run_ruby(<<~RUBY)
          require "heddle"
          interrupter = TracePoint.new(:c_return) do |event|
            next unless event.method_id == :#{method}

            interrupter.disable
            Process.kill(:INT, Process.pid)
          end
          begin
            Heddle.run do
              Fiber.schedule { begin; sleep; ensure; puts "ensured"; end }
              interrupter.enable
              Fiber.schedule { sleep(a_moment) && #{method == "fail_block" ? 'raise("error")' : "nil"} }
              sleep
            end
          rescue Interrupt
            puts "interrupted"
          end
        RUBY
        expect([output, status]).to match ["ensured\ninterrupted\n", be_success]
      end
    end

    it "ends a program that waits for its fibers at its end" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin; sleep; rescue Interrupt; puts "in a fiber"; ensure; puts "ensured"; end }
        ctrl_c
      RUBY
      expect([output, status.success?]).to match ["ensured\n", be_falsy]
    end

    it "ends a program whose fiber computes for ever" do
      _output, _errors, status = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run do
          Thread.new { Process.kill(:INT, Process.pid) }
          loop {}
        end
      RUBY
      expect(status.termsig).to eq interrupted
    end

    it "lets an ensure wait" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        Heddle.run do
          Fiber.schedule { begin; sleep; ensure; sleep(a_moment); puts "waited"; end }
          ctrl_c
          sleep
        end
      RUBY
      expect([output, status.termsig]).to eq ["waited\n", interrupted]
    end

    it "ends a program the second time when an ensure doesn't end" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        Heddle.run do
          Fiber.schedule { begin; sleep; ensure; puts "first"; ctrl_c; sleep; end }
          ctrl_c
          sleep
        end
      RUBY
      expect([output, status.termsig]).to eq ["first\n", interrupted]
    end

    it "is raised in a generator that the root fiber has resumed" do
      output, errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        Fiber.set_scheduler(Heddle::Scheduler.new)
        numbers = Enumerator.new { |yielder| begin; sleep; rescue Interrupt; yielder << "rescued"; end }
        ctrl_c
        puts numbers.next
      RUBY
      expect([output, errors, status.success?]).to eq ["rescued\n", "", true]
    end

    it "runs a program's trap instead" do
      output, errors, status = run_ruby(<<~RUBY)
        #{ctrl_c}
        trapped = Queue.new
        trap("INT") { trapped.push("trapped") }
        Heddle.run do
          Fiber.schedule { sleep(a_moment); puts "slept" }
          ctrl_c
          puts trapped.pop
        end
      RUBY
      # In any order: the thread that sends the signal may be late.
      expect([output.lines(chomp: true).sort, errors, status.success?]).to eq [%w[slept trapped], "", true]
    end
  end

  describe "SIGTERM" do
    it "ends a program whose fibers all wait, and runs their ensure" do
      output, _errors, status = run_ruby(<<~RUBY)
        require "heddle"
        require #{Settling::PATH.dump}
        $stdout.sync = true
        Heddle.run do
          Thread.new { Settling.one(Thread.main) || Process.kill(:TERM, Process.pid) }
          begin; sleep; ensure; puts "ensured"; end
        end
      RUBY
      expect([output, status.termsig]).to eq ["ensured\n", Signal.list.fetch("TERM")]
    end
  end

  describe "trap" do
    around do |example|
      previous = trap("USR1", "DEFAULT")
      example.run
    ensure
      trap("USR1", previous)
    end

    it "may wake a fiber through a queue" do
      received = Heddle.run do
        signals = Queue.new
        trap("USR1") { |number| signals.push(number) }
        Process.kill(:USR1, Process.pid)
        signals.pop
      end
      expect(received).to eq Signal.list.fetch("USR1")
    end

    it "runs at once while the scheduler is asleep in the kernel" do
      main = Thread.current
      received = Heddle.run do
        signals = Queue.new
        trap("USR1") { signals.push(:handled) }
        sender = Thread.new do
          until_asleep(main)
          Process.kill(:USR1, Process.pid)
        end
        signals.pop.tap { sender.join }
      end
      expect(received).to eq :handled
    end

    it "doesn't end the waits of fibers" do
      slept = nil
      Heddle.run do
        trap("USR1") { :nothing }
        Fiber.schedule { slept = seconds { sleep(0.03) } } # at least
        Process.kill(:USR1, Process.pid)
        sleep(a_moment)
        Process.kill(:USR1, Process.pid)
      end
      expect(slept).to be >= 0.03
    end

    it "may raise, and Heddle.run raises the error" do
      main = Thread.current
      sender = nil
      expect do
        Heddle.run do
          trap("USR1") { raise "in the handler" }
          sender = Thread.new do
            until_asleep(main)
            Process.kill(:USR1, Process.pid)
          end
          sleep
        end
      end.to raise_error("in the handler")
      sender.join
    end

    it "loses none of many signals' wake-ups" do
      count = Heddle.run do
        signals = Queue.new
        trap("USR1") { signals.push(:one) }
        100.times.count do
          Process.kill(:USR1, Process.pid)
          signals.pop
        end
      end
      expect(count).to eq 100
    end
  end

  describe "Thread#raise" do
    let(:stop) { Class.new(StandardError) }

    before { stop }

    it "cancels the fibers of a thread that waits for them at its end, runs their ensure, and continues" do
      events = Queue.new
      thread = scheduled_thread do
        2.times do
          Fiber.schedule do
            sleep
          rescue stop
            events.push(:in_a_fiber)
          ensure
            events.push(:ensured)
          end
        end
      end
      until_asleep(thread)
      thread.raise(stop)
      expect { thread.join }.to raise_error(stop)
      expect(Array.new(events.size) { events.pop }).to eq %i[ensured ensured]
    end

    it "is raised out of Heddle.run, and the thread can run another one" do
      ready = Queue.new
      thread = Thread.new do
        Heddle.run do
          ready.push(true)
          sleep
        end
      rescue stop
        Heddle.run { sleep(a_moment) && :again }
      end
      ready.pop
      until_asleep(thread)
      thread.raise(stop)
      expect(thread.value).to eq :again
    end

    it "in a root fiber that waits natively lets its fibers run to their end" do
      events = []
      ready = Queue.new
      thread = scheduled_thread do
        Fiber.schedule do
          sleep(a_moment)
          events << :fiber
        end
        begin
          ready.push(true)
          sleep
        rescue stop
          events << :root
        end
      end
      ready.pop
      until_asleep(thread)
      thread.raise(stop)
      thread.join
      expect(events).to eq %i[root fiber]
    end
  end

  describe "Thread#kill" do
    it "cancels the fibers of a thread that waits for them at its end, and runs their ensure" do
      events = Queue.new
      thread = scheduled_thread do
        2.times do
          Fiber.schedule do
            sleep(60)
          ensure
            events.push(:ensured)
          end
        end
      end
      until_asleep(thread)
      thread.kill.join
      expect(Array.new(events.size) { events.pop }).to eq %i[ensured ensured]
    end

    it "cancels the fibers of a thread whose root fiber waits, and runs their ensure" do
      events = Queue.new
      ready = Queue.new
      thread = scheduled_thread do
        Fiber.schedule do
          sleep(60)
        ensure
          events.push(:ensured)
        end
        ready.push(true)
        sleep
      end
      ready.pop
      until_asleep(thread)
      thread.kill.join
      expect(events.pop(timeout: 0)).to eq :ensured
    end

    it "lets an ensure wait" do
      events = Queue.new
      thread = scheduled_thread do
        Fiber.schedule do
          sleep(60)
        ensure
          sleep(a_moment)
          events.push(:waited)
        end
      end
      until_asleep(thread)
      thread.kill.join
      expect(events.pop(timeout: 0)).to eq :waited
    end

    it "ends a thread in Heddle.run" do
      ready = Queue.new
      thread = Thread.new do
        Heddle.run do
          ready.push(true)
          sleep
        end
      end
      ready.pop
      until_asleep(thread)
      thread.kill.join
      expect(thread.status).to be false
    end
  end
end
