# frozen_string_literal: true

RSpec.describe "A process that is started by a CPU-bound fiber" do
  # Computes until another fiber has run. Returns the order of events.
  def compute_beside_other
    events = []
    fiber = YieldingFiber.schedule do
      nil until events.any?
      events << :cpu_bound
    end
    events << :other
    sleep(0) while fiber.alive?
    events
  end

  # Runs the block in a yielding fiber that has been preempted before, and returns its value.
  def in_preempted_fiber(**)
    Heddle.run(**) do
      done = false
      values = []
      fiber = YieldingFiber.schedule do
        nil until done
        values << yield
      end
      done = true
      sleep(0) while fiber.alive?
      values.fetch(0)
    end
  end

  Selection.tickers.each do |ticker|
    describe "with the ticker #{ticker}" do
      it "has a ticker of its own when it schedules yielding fibers" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        expect(in_preempted_fiber(ticker:) { in_child { compute_beside_other } }).to eq %i[other cpu_bound]
      end

      it "counts its own preemptions, on its own ticker" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        name = in_preempted_fiber(ticker:) do
          in_child do
            compute_beside_other
            Fiber.scheduler.ticker
          end
        end
        expect(name).to eq ticker
      end

      it "doesn't stop the parent's ticker" do
        order = in_preempted_fiber(ticker:) do
          in_child { :nothing }
          compute_beside_other
        end
        expect(order).to eq %i[other cpu_bound]
      end

      it "may start a scheduler in a thread, and preempt there" do
        order = in_preempted_fiber(ticker:) do
          in_child { Thread.new { Heddle.run(ticker:) { compute_beside_other } }.value }
        end
        expect(order).to eq %i[other cpu_bound]
      end

      it "may fork again" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        expect(in_preempted_fiber(ticker:) { in_child { in_child { compute_beside_other } } }).to eq %i[other cpu_bound]
      end

      it "preempts a fiber that calls no hook" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        counted = in_preempted_fiber(ticker:) do
          in_child do
            # Another fiber becomes due by a timer. Only a tick can detect it.
            limited = false
            begin
              Timeout.timeout(0.002) { loop { Integer.sqrt(2) } }
            rescue Timeout::Error
              limited = true
            end
            limited
          end
        end
        expect(counted).to be true
      end

      it "continues the fiber when fork has no block, and the fiber is preempted further" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        output, errors, status = run_ruby(<<~RUBY)
          require "heddle"
          $stdout.sync = true
          Heddle.run(ticker: :#{ticker}) do
            done = false
            fiber = YieldingFiber.schedule do
              Integer.sqrt(2) until done
              if (pid = fork)
                Process.wait(pid)
                puts "parent \#{$?.exitstatus}"
              else
                ran = false
                inner = YieldingFiber.schedule { Integer.sqrt(2) until ran; puts "inner cpu_bound" }
                puts "child"
                ran = true
                sleep(0.001) while inner.alive?
                exit!(5)
              end
            end
            done = true
            sleep(0) while fiber.alive?
          end
        RUBY
        expect([output, errors, status.success?]).to eq ["child\ninner cpu_bound\nparent 5\n", "", true]
      end

      it "restores the signal's action when its scheduler is closed" do
        restored = in_preempted_fiber(ticker:) do
          in_child do
            Thread.new { Heddle.run(ticker:) { compute_beside_other } }.join
            :closed
          end
        end
        expect(restored).to eq :closed
      end

      it "can be waited for by a fiber while another fiber computes" do
        status = Heddle.run(ticker:) do
          found = nil
          Fiber.schedule do
            pid = spawn("exit 4")
            found = Process.wait2(pid).last.exitstatus
          end
          YieldingFiber.schedule { nil until found }
          sleep(0.0001) until found
          found
        end
        expect(status).to eq 4
      end

      it "has inherited no timer when it was started with spawn or exec" do
        output, errors, status = run_ruby(<<~RUBY)
          require "heddle"
          $stdout.sync = true
          Heddle.run(ticker: :#{ticker}) do
            YieldingFiber.schedule do
              200_000.times { Integer.sqrt(2) }
              system("cat /proc/self/timers; ls /proc/self/task | wc -l")
              exec("cat /proc/self/timers; ls /proc/self/task | wc -l; ls -l /proc/self/fd | grep -c timerfd")
            end
          end
        RUBY
        expect([output.split, errors, status.exitstatus]).to eq [%w[1 1 0], "", 1]
      end

      it "has standard streams that work while its parent computes" do
        output = Heddle.run(ticker:) do
          found = nil
          Fiber.schedule { found = IO.popen(["cat"], "r+") { |io| io.puts("text") || io.close_write || io.read } }
          YieldingFiber.schedule { nil until found }
          sleep(0.0001) until found
          found
        end
        expect(output).to eq "text\n"
      end
    end
  end

  it "ends in the child although the parent has preempted a yielding fiber without a scheduler" do
    program = <<~RUBY
      over = false
      fiber = YieldingFiber.new { nil until over }
      fiber.resume
      pid = fork { exit(3) }
      over = true
      fiber.resume while fiber.alive?
      p Process.wait2(pid).last.exitstatus
    RUBY
    expect(run_ruby("require 'heddle'\n#{program}").first).to eq "3\n"
  end
end
