# frozen_string_literal: true

RSpec.describe "Signals and the tree of fibers" do
  # Sends a signal to the process when its main thread sleeps.
  prelude = <<~RUBY
    require "heddle"
    require #{Settling::PATH.dump}
    $stdout.sync = true
    def signal(name)
      Thread.new do
        Settling.one(Thread.main)
        Process.kill(name, Process.pid)
      end
    end
    def endless(name)
      Heddle.spin(background: true) { begin; sleep; ensure; sleep(a_moment); puts name; end }
    end
  RUBY

  it "exits if a signal's handler says so while the root waits for its children, one of which has failed" do
    _output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      trap(:TERM) { exit(3) }
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Heddle.spin(background: true) do
        sleep
      ensure
        raise "of a child"
      end
      Heddle.spin(background: true) do
        sleep
      ensure
        sleep(0)
        Process.kill(:TERM, Process.pid)
        sleep(0)
      end
      Heddle.snooze
    RUBY

    expect([errors, status.exitstatus]).to eq(["", 3])
  end

  %w[INT TERM].each do |name|
    describe "SIG#{name}" do
      number = Signal.list.fetch(name)

      it "runs the ensure of the whole tree before it ends the process" do
        output, _errors, status = run_ruby(<<~RUBY)
          #{prelude}
          Heddle.run do
            Heddle.spin(background: true) { endless("grandchild"); begin; sleep; ensure; puts "child"; end }
            Fiber.schedule { begin; sleep; ensure; puts "scheduled"; end }
            signal("#{name}")
            begin; sleep; ensure; puts "root"; end
          end
          puts "not reached"
        RUBY

        expect([output.lines(chomp: true).sort, status.termsig])
          .to eq([%w[child grandchild root scheduled], number])
      end

      it "gives the process the exit status that shells expect" do
        output, = run_ruby(<<~RUBY)
          program = 'require "heddle"; Heddle.run { Heddle.spin(background: true) { sleep }; $stdout.syswrite("\n"); sleep }'
          reader, writer = IO.pipe
          pid = spawn("sh", "-c", '"$0" "$@"; echo $?', #{RbConfig.ruby.inspect}, *$:.flat_map { |d| ["-I", d] }, "-e",
                      program, out: writer, err: File::NULL, pgroup: true)
          writer.close
          reader.gets
          child = File.read("/proc/\#{pid}/task/\#{pid}/children").to_i
          Process.kill("#{name}", child)
          puts reader.read
        RUBY

        expect(output).to eq("#{128 + number}\n")
      end

      it "ends the process at once the second time, when an ensure doesn't end" do
        output, _errors, status = run_ruby(<<~RUBY)
          #{prelude}
          Heddle.run do
            Heddle.spin(background: true) { begin; sleep; ensure; puts "first"; signal("#{name}"); sleep; end }
            signal("#{name}")
            sleep
          end
        RUBY

        expect([output, status.termsig]).to eq(["first\n", number])
      end

      it "ends a tree of CPU-bound fibers" do
        output, _errors, status = run_ruby(<<~RUBY)
          #{prelude}
          Heddle.run do
            endless("brother")
            Heddle.spin(background: true) { Heddle.snooze; Process.kill("#{name}", Process.pid); loop {} }
            sleep
          end
        RUBY

        expect([output, status.termsig]).to eq(["brother\n", number])
      end

      it "ends the tree of a root fiber without Heddle.run, and ends the process at once the second time" do
        output, _errors, status = run_ruby(<<~RUBY)
          #{prelude}
          Fiber.set_scheduler(Heddle::Scheduler.new)
          fiber = endless("child")
          Heddle.spin(background: true) { begin; sleep; ensure; puts "stubborn"; signal("#{name}"); sleep; end }
          signal("#{name}")
          Heddle.await(fiber)
        RUBY

        expect([output.lines(chomp: true).max, status.termsig]).to eq(["stubborn", number])
      end
    end
  end

  describe "Heddle.trap" do
    around do |example|
      previous = trap("USR1", "DEFAULT")
      example.run
    ensure
      trap("USR1", previous)
    end

    it "runs its block in a fiber, which may lock a Mutex and wait" do
      answer = Heddle.run do
        mutex = Mutex.new
        answers = Queue.new
        Heddle.trap("USR1") do |number|
          mutex.synchronize { sleep(a_moment) && answers.push([number, Fiber.current.blocking?]) }
        end
        Process.kill("USR1", Process.pid)
        answers.pop
      end

      expect(answer).to eq([Signal.list.fetch("USR1"), false])
    end

    it "raises an error of its block in the fiber that called it" do
      attempt = lambda do
        Heddle.run do
          Heddle.trap("USR1") { raise KeyError, "in the handler" }
          Process.kill("USR1", Process.pid)
          sleep
        end
      end

      expect(&attempt).to raise_error(KeyError, "in the handler")
    end

    it "lasts until the fiber that called it ends" do
      before = proc { :before }
      trap("USR1", before)
      Heddle.run { Heddle.await_all(Heddle.spin { Heddle.trap("USR1") { :inside } }) }

      expect(trap("USR1", "DEFAULT")).to eq(before)
    end

    it "lasts until it is terminated" do
      before = proc { :before }
      trap("USR1", before)
      restored = Heddle.run do
        handler = Heddle.trap("USR1") { :inside }
        Heddle.stop(handler)
        Heddle.await(handler)
        trap("USR1", "DEFAULT")
      end

      expect(restored).to eq(before)
    end

    it "restores the handler of a signal that it was given twice" do
      before = proc { :before }
      trap("USR1", before)
      Heddle.run { Heddle.await_all(Heddle.spin { Heddle.trap("USR1", "SIGUSR1") { :inside } }) }

      expect(trap("USR1", "DEFAULT")).to eq(before)
    end

    it "without a block stops the tree, after which the signal ends the process" do
      output, _errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Heddle.run do
          Heddle.trap("HUP", :QUIT)
          endless("child")
          signal("QUIT")
          sleep
        end
      RUBY

      expect([output, status.termsig]).to eq(["child\n", Signal.list.fetch("QUIT")])
    end

    it "accepts SIGINT and SIGTERM, so that a program can end in its own way" do
      output, errors, status = run_ruby(<<~RUBY)
        #{prelude}
        Heddle.run do
          server = Heddle.spin(background: true) { begin; sleep; ensure; puts "closed"; end }
          Heddle.trap("INT", "TERM") { Heddle.stop(server) }
          signal("TERM")
          Heddle.await(server)
          puts "bye"
        end
      RUBY

      expect([output, errors, status.success?]).to eq(["closed\nbye\n", "", true])
    end

    it "refuses unknown signals, signals that can't be handled and an empty list, and leaves all traps as they were" do
      before = proc { :before }
      trap("USR1", before)
      Heddle.run do
        expect { Heddle.trap("USR1", "NONSENSE") { nil } }.to raise_error(ArgumentError, /NONSENSE/)
        expect { Heddle.trap("KILL") { nil } }.to raise_error(Errno::EINVAL)
        expect { Heddle.trap { nil } }.to raise_error(ArgumentError, /at least one signal/)
      end

      expect(trap("USR1", "DEFAULT")).to eq(before)
    end
  end
end
