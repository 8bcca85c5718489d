# frozen_string_literal: true

RSpec.describe "A thread with CPU-bound fibers" do
  let(:stop) { Class.new(StandardError) }

  Selection.tickers.each do |ticker|
    [1, 3].each do |count|
      it "gets Thread#raise in its root fiber, whatever others rescue: #{count} fibers, with the ticker #{ticker}" do
        begun = Queue.new
        rescued = []
        thread = Thread.new do
          Heddle.run(ticker:) do
            count.times do
              YieldingFiber.schedule do
                begun.push(true)
                loop { Integer.sqrt(2) }
              rescue Exception => e # rubocop:disable Lint/RescueException -- what must not be swallowed
                rescued << e.class
              end
            end
          end
        rescue stop => e
          e.class
        end
        count.times { begun.pop }
        thread.raise(stop)
        expect([thread.value, rescued & [stop]]).to eq [stop, []]
      end

      it "is ended by Thread#kill, and its fibers' ensure is run: #{count} fibers, with the ticker #{ticker}" do
        events = Queue.new
        thread = Thread.new do
          Heddle.run(ticker:) do
            count.times do
              YieldingFiber.schedule do
                events.push(:begun)
                loop { Integer.sqrt(2) }
              ensure
                events.push(:ensured)
              end
            end
            sleep
          end
        end
        count.times { events.pop }
        thread.kill.join
        expect(Array.new(events.size) { events.pop }).to eq [:ensured] * count
      end

      it "ends by Ctrl-C: #{count} fibers, with the ticker #{ticker}" do
        output, _errors, status = run_ruby(<<~RUBY)
          require "heddle"
          $stdout.sync = true
          Heddle.run(ticker: :#{ticker}) do
            begun = 0
            #{count}.times do
              YieldingFiber.schedule { begin; begun += 1; loop { Integer.sqrt(2) }; ensure; puts "ensured"; end }
            end
            Thread.new { Process.kill(:INT, Process.pid) }
            sleep
          end
        RUBY
        expect([output, status.termsig]).to eq ["ensured\n" * count, Signal.list.fetch("INT")]
      end
    end

    it "runs a trap while a fiber computes, and the trap may wake another fiber, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run(ticker: :#{ticker}) do
          queue = Queue.new
          popped = nil
          trap("USR1") { queue.push(:trapped) }
          Fiber.schedule { popped = queue.pop }
          YieldingFiber.schedule { Integer.sqrt(2) until popped; puts popped }
          Process.kill(:USR1, Process.pid)
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["trapped\n", "", true]
    end

    it "runs a trap that computes for many ticks to its end, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run(ticker: :#{ticker}) do
          sum = nil
          trap("USR1") { sum = (1..500_000).sum { |number| number } }
          cpu_bound = YieldingFiber.schedule { Integer.sqrt(2) until sum }
          Process.kill(:USR1, Process.pid)
          sleep(0) while cpu_bound.alive?
          p sum
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["#{500_000 * 500_001 / 2}\n", "", true]
    end

    it "is ended by what a trap raises, though the CPU-bound fiber rescues it, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        trap("USR1") { raise KeyError, "trapped" }
        begin
          Heddle.run(ticker: :#{ticker}) do
            Process.kill(:USR1, Process.pid)
            loop { Integer.sqrt(2) }
          rescue KeyError
            puts "swallowed"
          end
        rescue KeyError => e
          puts e.message
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["trapped\n", "", true]
    end

    it "lets other threads run, with the ticker #{ticker}" do
      counted = Heddle.run(ticker:) do
        count = 0
        thread = Thread.new { (count += 1) && Thread.pass until count > 10 }
        2.times { YieldingFiber.schedule { Integer.sqrt(2) until count > 10 } }
        thread.join
        count
      end
      expect(counted).to be > 10
    end

    it "runs at_exit blocks that compute in yielding fibers, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        at_exit do
          Heddle.run(ticker: :#{ticker}) do
            done = false
            YieldingFiber.schedule { Integer.sqrt(2) until done; puts "cpu_bound" }
            puts "other"
            done = true
          end
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["other\ncpu_bound\n", "", true]
    end

    it "has its fibers preempted until the program's end with Fiber.set_scheduler, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Fiber.set_scheduler(Heddle::Scheduler.new(ticker: :#{ticker}))
        done = false
        Fiber.schedule { sleep(a_moment); puts "other"; done = true }
        YieldingFiber.schedule { Integer.sqrt(2) until done; puts "cpu_bound" }
      RUBY
      expect([output, errors, status.success?]).to eq ["other\ncpu_bound\n", "", true]
    end

    it "ends by exit in a CPU-bound fiber, and other fibers run their ensure, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Heddle.run(ticker: :#{ticker}) do
          done = false
          Fiber.schedule { begin; sleep; ensure; puts "other"; end }
          YieldingFiber.schedule { Integer.sqrt(2) until done; exit(3) }
          done = true
        end
      RUBY
      expect([output, errors, status.exitstatus]).to eq ["other\n", "", 3]
    end
  end

  it "has an exception of Fiber#raise raised in its fiber although a signal's handler runs just before" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      class Sent < Exception; end
      handled = false
      trap("USR1") { Thread.handle_interrupt(Sent => :immediate) { handled = true } }
      # The signal comes in the job that sends the exception, and Ruby runs its handler before it raises that.
      signalling = TracePoint.new(:raise) do |event|
        Process.kill(:USR1, Process.pid) if event.raised_exception.class.name == "Heddle::Stop"
      end
      Heddle.run do
        fiber = Heddle::YieldingFiber.schedule do
          loop {}
        rescue Sent => e
          p [e.message, handled]
        end
        signalling.enable { fiber.raise(Sent, "delivered") }
      end
    RUBY
    expect([output, errors, status.success?]).to eq [%(["delivered", true]\n), "", true]
  end

  # An error tracker has such a hook. Ruby ends the program if an exception leaves it.
  it "has an exception raised behind the hook of a TracePoint that runs for another exception" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      class Sent < Exception; end
      hooked = false
      turns = 0
      collecting = TracePoint.new(:raise) do
        hooked = true
        nil until turns == 3
      end
      Heddle.run(preempt: :all) do
        collecting.enable do
          fiber = Fiber.schedule do
            Integer("none")
          rescue ArgumentError
            begin
              loop {}
            rescue Sent => e
              p e.message
            end
          end
          sleep 0 until hooked
          fiber.raise(Sent, "delivered")
          3.times do
            turns += 1
            sleep 0
          end
          sleep 0 while fiber.alive?
        end
      end
    RUBY
    expect([output, errors, status.success?]).to eq [%("delivered"\n), "", true]
  end
end
