# frozen_string_literal: true

RSpec.describe "Many CPU-bound fibers" do
  # In children: ended fibers keep their stacks, and with them their memory maps, until they are collected.
  Selection.tickers.each do |ticker|
    it "all end: 10,000 fibers that compute a little, with the ticker #{ticker}" do
      total = in_child do
        sums = []
        Heddle.run(ticker:, quantum: 0.0005, tick: 0.0002) do
          10_000.times do |number|
            YieldingFiber.schedule do
              mine = 0
              100.times { mine += number }
              # `sum += mine` may be interrupted between two instructions, as Ruby's threads may.
              sums << mine
            end
          end
        end
        [sums.size, sums.sum]
      end
      expect(total).to eq [10_000, 100 * 9999 * 5000]
    end

    it "may all be alive at once: 10,000 fibers that were preempted or wait, with the ticker #{ticker}" do
      total = in_child do
        count = []
        Heddle.run(ticker:, preempt: :all, quantum: 0.0005, tick: 0.0002) do
          10_000.times do
            Fiber.schedule do
              50.times { Integer.sqrt(2) }
              sleep(a_moment)
              50.times { Integer.sqrt(2) }
              count << nil
            end
          end
        end
        count.size
      end
      expect(total).to eq 10_000
    end

    it "may end exactly at a tick: thousands of short fibers, with the ticker #{ticker}" do
      total = in_child do
        ended = []
        Heddle.run(ticker:, quantum: 0.0001, tick: 0.0001) do
          over = false
          Fiber.schedule { sleep(0) until over }
          3000.times do |number|
            YieldingFiber.schedule do
              (number % 300).times { Integer.sqrt(2) }
              ended << number
            end
          end
          sleep(0) until ended.size == 3000
          over = true
        end
        ended.size
      end
      expect(total).to eq 3000
    end

    it "may be resumed and end exactly at a tick, with the ticker #{ticker}" do
      total = in_child do
        sum = 0
        Heddle.run(ticker:, quantum: 0.0001, tick: 0.0001) do
          over = false
          Fiber.schedule { sleep(0) until over }
          cpu_bound = YieldingFiber.schedule do
            3000.times do |number|
              fiber = Fiber.new { (number % 100).times { Integer.sqrt(2) } }
              fiber.resume
              sum += 1
            end
          end
          sleep(0) while cpu_bound.alive?
          over = true
        end
        sum
      end
      expect(total).to eq 3000
    end

    it "run in four threads with schedulers at once, with the ticker #{ticker}" do
      threads = Array.new(4) do
        Thread.new do
          sum = 0
          Heddle.run(ticker:, quantum: 0.001, tick: 0.0005) do
            10.times { YieldingFiber.schedule { 20_000.times { |number| sum += number } } }
            Fiber.schedule { 20.times { sleep(a_moment) } }
          end
          sum
        end
      end
      # `sum += number` may be interrupted between two instructions, as Ruby's threads may.
      expect(threads.map(&:value)).to all(be_between(20_000 * 19_999 / 2, 10 * 20_000 * 19_999 / 2))
    end

    it "all run although two fibers keep the run queue full, with the ticker #{ticker}" do
      runs = Array.new(4, 0)
      Heddle.run(ticker:) do
        2.times { Fiber.schedule { sleep(0) until runs.all? { |count| count > 2 } } }
        4.times do |number|
          YieldingFiber.schedule do
            until runs.all? { |count| count > 2 }
              preemptions = -> { Fiber.scheduler.stats[:run_queue][:preemptions_count] }
              before = preemptions.call
              runs[number] += 1
              nil until preemptions.call > before || runs.all? { |count| count > 2 }
            end
          end
        end
      end
      expect(runs).to all(be > 2)
    end

    it "share their scheduler with continuous I/O, with the ticker #{ticker}" do
      echoed = Heddle.run(ticker:) do
        count = 0
        IO.pipe do |reader, writer|
          done = false
          4.times { YieldingFiber.schedule { Integer.sqrt(2) until done } }
          echo = Fiber.schedule { count += 1 while reader.gets }
          100.times do
            writer.puts("line")
            sleep(0)
          end
          done = true
          writer.close
          sleep(0) while echo.alive?
        end
        count
      end
      expect(echoed).to eq 100
    end

    it "get every time limit and every raise that is meant for them, with the ticker #{ticker}" do
      limited = raised = 0
      Heddle.run(ticker:, quantum: 0.001, tick: 0.0005) do
        fibers = Array.new(20) do
          YieldingFiber.schedule do
            begin
              Timeout.timeout(0.002) { loop { Integer.sqrt(2) } }
            rescue Timeout::Error
              limited += 1
            end
            loop { Integer.sqrt(2) }
          rescue KeyError
            raised += 1
          end
        end
        sleep(0) until limited == 20
        fibers.each { |fiber| fiber.raise(KeyError) }
      end
      expect([limited, raised]).to eq [20, 20]
    end
  end
end
