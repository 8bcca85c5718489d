# frozen_string_literal: true

RSpec.describe "A process that is started by a fiber that computes" do
  # Computes until another fiber has run. Gives what happened.
  def hog_beside_other
    events = []
    hog = YieldingFiber.schedule do
      nil until events.any?
      events << :hog
    end
    events << :other
    sleep(0) while hog.alive?
    events
  end

  # Runs the block in a yielding fiber that has been preempted before, and gives its value.
  def in_preempted_fiber(**)
    Heddle.run(**) do
      done = false
      values = []
      hog = YieldingFiber.schedule do
        nil until done
        values << yield
      end
      done = true
      sleep(0) while hog.alive?
      values.fetch(0)
    end
  end

  %i[signal timerfd].each do |ticker|
    describe "with the ticker #{ticker}" do
      it "has a ticker of its own when it schedules yielding fibers" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        expect(in_preempted_fiber(ticker:) { in_child { hog_beside_other } }).to eq %i[other hog]
      end

      it "counts its own preemptions, on its own ticker" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        name = in_preempted_fiber(ticker:) do
          in_child do
            hog_beside_other
            Fiber.scheduler.ticker
          end
        end
        expect(name).to eq ticker
      end

      it "leaves the parent's ticker ticking" do
        order = in_preempted_fiber(ticker:) do
          in_child { :nothing }
          hog_beside_other
        end
        expect(order).to eq %i[other hog]
      end

      it "may start a scheduler in a thread, and preempt there" do
        order = in_preempted_fiber(ticker:) do
          in_child { Thread.new { Heddle.run(ticker:) { hog_beside_other } }.value }
        end
        expect(order).to eq %i[other hog]
      end

      it "may fork again" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        expect(in_preempted_fiber(ticker:) { in_child { in_child { hog_beside_other } } }).to eq %i[other hog]
      end

      it "is preempted though it calls no hook" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        counted = in_preempted_fiber(ticker:) do
          in_child do
            # Another fiber is due as soon as the clock says so: nobody but a tick can find out.
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

      it "goes on without a block, and is preempted further" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
        output, errors, status = run_ruby(<<~RUBY)
          require "heddle"
          $stdout.sync = true
          Heddle.run(ticker: :#{ticker}) do
            done = false
            hog = YieldingFiber.schedule do
              Integer.sqrt(2) until done
              if (pid = fork)
                Process.wait(pid)
                puts "parent \#{$?.exitstatus}"
              else
                ran = false
                inner = YieldingFiber.schedule { Integer.sqrt(2) until ran; puts "inner hog" }
                puts "child"
                ran = true
                sleep(0.001) while inner.alive?
                exit!(5)
              end
            end
            done = true
            sleep(0) while hog.alive?
          end
        RUBY
        expect([output, errors, status.success?]).to eq ["child\ninner hog\nparent 5\n", "", true]
      end

      it "gives back what was set for the signal when its scheduler is closed" do
        restored = in_preempted_fiber(ticker:) do
          in_child do
            Thread.new { Heddle.run(ticker:) { hog_beside_other } }.join
            :closed
          end
        end
        expect(restored).to eq :closed
      end

      it "is waited for by a fiber while another computes" do
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
