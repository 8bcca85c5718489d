# frozen_string_literal: true

require "English"
RSpec.describe "A CPU-bound fiber" do
  # Threads on which a scheduler may run.
  places = {
    "on the main thread" => ->(options, block) { Heddle.run(**options, &block) },
    "on another thread" => ->(options, block) { Thread.new { Heddle.run(**options, &block) }.value }
  }

  # Runs CPU-bound fibers of these classes until another fiber has run. Returns the order of events.
  def compute_beside_other(*classes)
    events = []
    done = false
    cpu_bound_fibers = classes.map do |cpu_bound|
      cpu_bound.schedule do
        nil until done
        events << :cpu_bound
      end
    end
    Fiber.schedule do
      events << :other
      done = true
    end
    sleep(0) while cpu_bound_fibers.any?(&:alive?)
    events
  end

  places.each do |place, run|
    Selection.tickers.each do |ticker|
      describe "#{place} with the ticker #{ticker}" do
        define_method(:run) { |**options, &block| run.call({ ticker: }.merge(options), block) }

        it "lets other fibers run if it is a yielding fiber" do
          expect(run { compute_beside_other(YieldingFiber) }).to eq %i[other cpu_bound]
        end

        it "lets other fibers run if it is one of several yielding fibers" do
          expect(run { compute_beside_other(*[YieldingFiber] * 5) }).to eq [:other, *[:cpu_bound] * 5]
        end

        it "lets other fibers run if it is any fiber under preempt: :all" do
          expect(run(preempt: :all) { compute_beside_other(Fiber) }).to eq %i[other cpu_bound]
        end

        it "lets other fibers run if it is a yielding fiber under preempt: :all" do
          expect(run(preempt: :all) { compute_beside_other(YieldingFiber) }).to eq %i[other cpu_bound]
        end

        it "lets other fibers run if it is the block of Heddle.run under preempt: :all" do
          order = run(preempt: :all) do
            events = []
            Fiber.schedule do
              sleep(0)
              events << :other
            end
            nil while events.empty?
            events << :block
          end
          expect(order).to eq %i[other block]
        end

        it "lets other fibers run if it was resumed with YieldingFiber#resume" do
          order = run do
            events = []
            Fiber.schedule do
              YieldingFiber.new do
                nil while events.empty?
                events << :cpu_bound
              end.resume
              events << :resumer
            end
            events << :other
            sleep(0) until events.size == 3
            events
          end
          expect(order).to eq %i[other cpu_bound resumer]
        end

        it "counts its preemptions, and names the ticker" do
          counted, name = run do
            compute_beside_other(YieldingFiber)
            [Fiber.scheduler.stats[:run_queue][:preemptions_count], Fiber.scheduler.ticker]
          end
          expect(counted).to be >= 1
          expect(name).to eq ticker
        end

        it "lets a sleeper wake" do
          expect(run do
            done = false
            cpu_bound = YieldingFiber.schedule { nil until done }
            sleep(a_moment)
            done = true
            cpu_bound.class
          end).to eq YieldingFiber
        end

        it "lets a reader read" do
          text = run do
            IO.pipe do |reader, writer|
              read = nil
              Fiber.schedule { read = reader.gets }
              YieldingFiber.schedule do
                writer.puts("line")
                nil until read
              end
              sleep(0) until read
              read
            end
          end
          expect(text).to eq "line\n"
        end

        it "lets other fibers pop what other threads push" do
          popped = run do
            queue = Queue.new
            found = nil
            Fiber.schedule { found = queue.pop }
            thread = Thread.new { queue.push(:pushed) }
            YieldingFiber.schedule { nil until found }
            thread.join
            sleep(0) until found
            found
          end
          expect(popped).to eq :pushed
        end

        it "is preempted for other CPU-bound fibers" do
          runs = run do
            count = Array.new(4, 0)
            Array.new(4) do |number|
              YieldingFiber.schedule { count[number] += 1 until count.all?(&:positive?) }
            end.each { |fiber| sleep(0) while fiber.alive? }
            count
          end
          expect(runs).to all(be_positive)
        end

        it "is preempted in a method of a method, in blocks and in procs" do
          deep = ->(level, &block) { level.zero? ? block.call : deep.call(level - 1, &block) }
          value = run do
            done = false
            found = nil
            YieldingFiber.schedule { found = deep.call(50) { [1].map { nil until done }.size } }
            done = true
            sleep(0) until found
            found
          end
          expect(value).to eq 1
        end

        it "keeps its locals, its self and its storage" do
          kept = run do
            Fiber[:key] = :stored
            done = false
            found = nil
            YieldingFiber.schedule(1, 2) do |first, second|
              local = :local
              nil until done
              found = [first, second, local, Fiber[:key]]
            end
            done = true
            sleep(0) until found
            found
          end
          expect(kept).to eq [1, 2, :local, :stored]
        end

        it "keeps $! and the last match" do
          matched = Class.new { def in(text) = (text =~ /(.)x/) && [yield, $LAST_MATCH_INFO[1]].last }.new
          kept = run do
            done = false
            found = nil
            YieldingFiber.schedule do
              raise "rescued"
            rescue StandardError
              found = [matched.in("text") { nil until done }, $ERROR_INFO.message]
            end
            mine = matched.in("oxen") { done = true }
            sleep(0) until found
            [*found, mine, $ERROR_INFO]
          end
          expect(kept).to eq ["e", "rescued", "o", nil]
        end

        it "ends by an error that is reported as usual" do
          expect do
            run do
              done = false
              YieldingFiber.schedule do
                nil until done
                raise "from the cpu_bound"
              end
              done = true
            end
          end.to output(/from the cpu_bound/).to_stderr
        end
      end
    end
  end

  describe "and is not preemptible" do
    Selection.tickers.each do |ticker|
      # Computes for several quanta.
      def several_quanta
        finish = Clock.cpu + 0.03
        -> { Clock.cpu > finish }
      end

      it "lets other fibers run only after its end, with the ticker #{ticker}" do
        order = Heddle.run(ticker:) do
          events = []
          finished = several_quanta
          YieldingFiber.schedule { nil until events.any? }
          Fiber.schedule do
            nil until finished.call
            events << :cpu_bound
          end
          events << :other
        end
        expect(order).to eq %i[cpu_bound other]
      end

      it "is not preempted under preempt: :none, though it is a yielding fiber, with the ticker #{ticker}" do
        order, counted, name = Heddle.run(ticker:, preempt: :none) do
          events = []
          finished = several_quanta
          YieldingFiber.schedule do
            nil until finished.call
            events << :cpu_bound
          end
          events << :other
          [events, Fiber.scheduler.stats[:run_queue][:preemptions_count], Fiber.scheduler.ticker]
        end
        expect([order, counted, name]).to eq [%i[cpu_bound other], 0, nil]
      end

      it "is not preempted if it is the root fiber, with the ticker #{ticker}" do
        order = with_scheduler(ticker:, preempt: :all) do
          events = []
          finished = several_quanta
          gate = Queue.new
          Fiber.schedule { events << gate.pop }
          gate.push(:other)
          nil until finished.call
          events << :root
        end
        expect(order).to eq %i[root other]
      end

      it "is not preempted if it is a blocking fiber, with the ticker #{ticker}" do
        order = Heddle.run(ticker:, preempt: :all) do
          events = []
          finished = several_quanta
          gate = Queue.new
          Fiber.schedule { events << gate.pop }
          Fiber.new(blocking: true) do
            gate.push(:other)
            nil until finished.call
            events << :blocking
          end.resume
          sleep(0) until events.size == 2
          events
        end
        expect(order).to eq %i[blocking other]
      end
    end
  end
end
