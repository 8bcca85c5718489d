# frozen_string_literal: true

RSpec.describe "A CPU-bound fiber while no other fiber is due" do
  # So long a quantum that an example that waits for its end fails by the time limit.
  quantum = 60
  # Seconds after which ticks are suppressed.
  a_while = 0.02

  # Computes, in a yielding fiber, until the block is true.
  def compute_until
    YieldingFiber.schedule { nil until yield }
  end

  it "isn't interrupted by most of the ticks in the end", :timed, if: File.directory?("/proc/self/task") do
    earlier = Ticking.threads
    share = Heddle.run(ticker: :timerfd, tick: 0.001) do
      result = Queue.new
      YieldingFiber.schedule do
        share = 1
        share = Ticking.share(0.001, earlier) { |finish| nil until Clock.now > finish } until share < 0.5
        result.push(share)
      end
      result.pop
    end
    expect(share).to be < 0.5
  end

  Selection.tickers.each do |ticker|
    it "is preempted for a fiber that another thread wakes: #{ticker}" do
      woken = nil
      Heddle.run(ticker:, quantum:) do
        computing = nil
        queue = Queue.new
        thread = Thread.new do
          Thread.pass until computing && Clock.now > computing + a_while
          queue.push(:an_item)
        end
        Fiber.schedule { woken = queue.pop }
        compute_until { (computing ||= Clock.now) && woken }
        thread.join
      end
      expect(woken).to eq :an_item
    end

    it "is preempted for a fiber that it wakes itself: #{ticker}" do
      woken = nil
      Heddle.run(ticker:, quantum:) do
        queue = Queue.new
        Fiber.schedule { woken = queue.pop }
        YieldingFiber.schedule do
          compute_for(a_while)
          queue.push(:an_item)
          nil until woken
        end
      end
      expect(woken).to eq :an_item
    end

    it "is preempted for a sleeper when its timer expires: #{ticker}" do
      slept = false
      Heddle.run(ticker:, quantum:) do
        Fiber.schedule { slept = sleep(a_while * 2) }
        compute_until { slept }
      end
      expect(slept).to be_truthy
    end

    it "is preempted for a sleeper that it starts itself: #{ticker}" do
      slept = false
      Heddle.run(ticker:, quantum:) do
        YieldingFiber.schedule do
          compute_for(a_while)
          Fiber.schedule { slept = sleep(a_moment) }
          nil until slept
        end
      end
      expect(slept).to be_truthy
    end

    it "is preempted for a reader when there is data: #{ticker}" do
      read = nil
      IO.pipe do |reader, writer|
        Heddle.run(ticker:, quantum:) do
          Fiber.schedule { read = reader.readpartial(4) }
          YieldingFiber.schedule do
            compute_for(a_while)
            writer.syswrite("data")
            nil until read
          end
        end
      end
      expect(read).to eq "data"
    end

    it "is preempted for another CPU-bound fiber when its quantum is over: #{ticker}" do
      counts = [0, 0]
      Heddle.run(ticker:, quantum: 2 * a_while) do
        compute_until { (counts[0] += 1) && counts[1] > 10 }
        compute_until { (counts[1] += 1) && counts[1] > 10 }
      end
      expect(counts[1]).to be > 10
    end

    it "is interrupted by a timeout: #{ticker}" do
      error = Heddle.run(ticker:, quantum:) do
        raised = Queue.new
        YieldingFiber.schedule do
          Timeout.timeout(a_while * 2) { loop { nil } }
        rescue Timeout::Error => e
          raised.push(e.class)
        end
        raised.pop
      end
      expect(error).to eq Timeout::Error
    end

    it "isn't preempted in a critical section, but after it: #{ticker}" do
      slept = false
      within = nil
      Heddle.run(ticker:, quantum:) do
        YieldingFiber.schedule do
          compute_for(a_while)
          Fiber.schedule { slept = sleep(a_moment) }
          Heddle.without_preemption do
            compute_for(a_while)
            within = slept
          end
          nil until slept
        end
      end
      expect([within, slept]).to match [false, be_truthy]
    end

    it "is preempted in a forked child, too: #{ticker}" do
      skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
      slept = in_child do
        Heddle.run(ticker:, quantum:) do
          result = Queue.new
          YieldingFiber.schedule do
            compute_for(a_while)
            result.push(in_child { slept_beside_computing })
          end
          result.pop
        end
      end
      expect(slept).to be true
    end
  end

  # Runs in a forked child that has only this fiber.
  def slept_beside_computing
    slept = false
    Fiber.schedule { slept = true if sleep(a_moment) }
    nil until slept
    slept
  end
end
