# frozen_string_literal: true

RSpec.describe "A CPU-bound fiber" do
  let(:stop) { Class.new(StandardError) }

  # Computes for ever, and records what is raised in it.
  def compute_and_record(events)
    events << :begun
    loop { Integer.sqrt(events.size) }
  rescue StandardError => e
    events << e.class
    raise
  ensure
    events << :ensured
  end

  # Runs the block until :begun is among the events. On a busy machine a time limit may be over before its block begins.
  def until_begun(events)
    loop do
      yield
      break if events.include?(:begun)

      events.clear
    end
  end

  # Runs the block in a yielding fiber, and returns its value.
  def in_yielding_fiber(**, &block)
    Heddle.run(**) do
      values = Queue.new
      YieldingFiber.schedule { values << block.call }
      values.pop
    end
  end

  places = { "on the main thread" => ->(block) { block.call }, "on another thread" => lambda { |block|
    Thread.new(&block).value
  } }

  places.each do |place, run|
    Selection.tickers.each do |ticker|
      describe "#{place} with the ticker #{ticker}" do
        define_method(:run) { |&block| run.call(block) }

        it "is interrupted by its time limit, through rescue and ensure" do
          events = []
          until_begun(events) do
            run do
              in_yielding_fiber(ticker:) do
                Timeout.timeout(0.005, Timeout::Error) { compute_and_record(events) }
              rescue Timeout::Error
                events << :over
              end
            end
          end
          expect(events).to eq [:begun, Timeout::Error, :ensured, :over]
        end

        it "is interrupted by its time limit at the line where it computes" do
          events = []
          line = trace = nil
          until_begun(events) do
            trace = run do
              in_yielding_fiber(ticker:) do
                Timeout.timeout(0.005, Timeout::Error) do
                  line = __LINE__ + 1
                  loop { events[0] = :begun }
                end
              rescue Timeout::Error => e
                e.backtrace.grep(/#{Regexp.escape(__FILE__)}/).first
              end
            end
          end
          expect(trace).to start_with("#{__FILE__}:#{line}:")
        end

        it "gets the exception that its time limit names" do
          raised = run do
            in_yielding_fiber(ticker:) do
              Timeout.timeout(0.005, KeyError, "too slow") { loop { Integer.sqrt(2) } }
            rescue KeyError => e
              e.message
            end
          end
          expect(raised).to eq "too slow"
        end

        it "is interrupted by an outer time limit within an inner one" do
          events = []
          until_begun(events) do
            run do
              in_yielding_fiber(ticker:) do
                Timeout.timeout(0.005, IOError) do
                  Timeout.timeout(60, KeyError) { compute_and_record(events) }
                end
              rescue IOError
                events << :outer
              end
            end
          end
          expect(events).to eq [:begun, IOError, :ensured, :outer]
        end

        it "is interrupted by its time limit beside other CPU-bound fibers, which are not" do
          events = []
          run do
            Heddle.run(ticker:) do
              5.times { |number| YieldingFiber.schedule { (events << number) && nil until events.include?(:over) } }
              YieldingFiber.schedule do
                Timeout.timeout(0.005, Timeout::Error) { loop { Integer.sqrt(2) } }
              rescue Timeout::Error
                events << :over
              end
            end
          end
          expect(events.last(6)).to include(:over)
        end

        it "is interrupted while a generator that it has resumed computes" do
          events = []
          until_begun(events) do
            run do
              in_yielding_fiber(ticker:) do
                generator = Enumerator.new { |yielder| yielder << compute_and_record(events) }
                Timeout.timeout(0.005, Timeout::Error) { generator.next }
              rescue Timeout::Error
                events << :over
              end
            end
          end
          expect(events).to eq [:begun, Timeout::Error, :ensured, :over]
        end

        it "continues after a time limit that didn't expire" do
          values = run do
            in_yielding_fiber(ticker:) do
              Array.new(20) { |number| Timeout.timeout(60) { 20_000.times.sum { number } } }
            end
          end
          expect(values).to eq(Array.new(20) { |number| number * 20_000 })
        end

        it "can be interrupted again and again" do
          interrupted = run do
            in_yielding_fiber(ticker:, quantum: 0.001, tick: 0.0005) do
              Array.new(20) do
                Timeout.timeout(0.001, Timeout::Error) { loop { Integer.sqrt(2) } }
              rescue Timeout::Error
                :interrupted
              end
            end
          end
          expect(interrupted).to eq [:interrupted] * 20
        end

        it "may wait in the ensure of a block whose time limit has expired" do
          events = []
          until_begun(events) do
            run do
              in_yielding_fiber(ticker:) do
                Timeout.timeout(0.005, Timeout::Error) do
                  events << :begun
                  loop { Integer.sqrt(2) }
                ensure
                  sleep(a_moment)
                  events << :waited
                end
              rescue Timeout::Error
                events << :over
              end
            end
          end
          expect(events - [:begun]).to eq %i[waited over]
        end

        it "is interrupted by Fiber#raise from another fiber" do
          events = []
          run do
            Heddle.run(ticker:) do
              fiber = YieldingFiber.schedule do
                compute_and_record(events)
              rescue stop => e
                events << e.message
              end
              fiber.raise(stop, "from another")
              sleep(0) while fiber.alive?
              events << :raiser
            end
          end
          expect(events).to eq [:begun, stop, :ensured, "from another", :raiser]
        end

        it "is interrupted by Fiber#raise at the line where it computes" do
          line = nil
          trace = run do
            Heddle.run(ticker:) do
              found = nil
              fiber = YieldingFiber.schedule do
                x = 0
                line = __LINE__ + 1
                loop { x += 1 }
              rescue stop => e
                found = e.backtrace.grep(/#{Regexp.escape(__FILE__)}/).first
              end
              fiber.raise(stop)
              sleep(0) until found
              found
            end
          end
          expect(trace).to start_with("#{__FILE__}:#{line}:")
        end

        it "continues if it rescues the exception of Fiber#raise" do
          events = []
          run do
            Heddle.run(ticker:) do
              fiber = YieldingFiber.schedule do
                begin
                  compute_and_record(events)
                rescue stop
                  events << :rescued
                end
                nil until events.include?(:other)
                events << :cpu_bound
              end
              fiber.raise(stop)
              events << :other
              sleep(0) while fiber.alive?
            end
          end
          # The raising fiber may continue at any tick.
          expect(events - [:other]).to eq [:begun, stop, :ensured, :rescued, :cpu_bound]
        end

        it "is ended by Fiber#kill from another fiber, and runs its ensure only" do
          events = []
          run do
            Heddle.run(ticker:) do
              fiber = YieldingFiber.schedule { compute_and_record(events) }
              fiber.kill
              sleep(0) while fiber.alive?
              events << :killer
            end
          end
          expect(events).to eq %i[begun ensured killer]
        end

        it "is ended by Fiber#kill without a report on stderr" do
          expect do
            run do
              Heddle.run(ticker:) do
                fiber = YieldingFiber.schedule { loop { Integer.sqrt(2) } }
                fiber.kill
                sleep(0) while fiber.alive?
              end
            end
          end.not_to output.to_stderr
        end

        it "is ended by Fiber#kill though it rescues every exception" do
          ended = run do
            Heddle.run(ticker:) do
              fiber = YieldingFiber.schedule do
                loop { Integer.sqrt(2) }
              rescue StandardError
                retry
              end
              fiber.kill
              sleep(0) while fiber.alive?
              :ended
            end
          end
          expect(ended).to eq :ended
        end

        it "may wait and compute in its ensure after Fiber#kill" do
          events = []
          run do
            Heddle.run(ticker:) do
              fiber = YieldingFiber.schedule do
                loop { Integer.sqrt(2) }
              ensure
                sleep(a_moment)
                nil until events.include?(:other)
                events << :ensured
              end
              fiber.kill
              events << :other
              sleep(0) while fiber.alive?
            end
          end
          expect(events).to eq %i[other ensured]
        end

        it "is ended by Fiber#kill under preempt: :all, too" do
          events = []
          run do
            Heddle.run(ticker:, preempt: :all) do
              fiber = Fiber.schedule { compute_and_record(events) }
              pass_until { events.any? }
              fiber.kill
              sleep(0) while fiber.alive?
            end
          end
          expect(events).to eq %i[begun ensured]
        end

        it "leaves no fiber and no time limit behind when many are interrupted at once" do
          events = []
          run do
            Heddle.run(ticker:) do
              50.times do
                YieldingFiber.schedule do
                  Timeout.timeout(0.003, Timeout::Error) { loop { Integer.sqrt(2) } }
                rescue Timeout::Error
                  events << :over
                end
              end
            end
          end
          expect(events).to eq [:over] * 50
        end
      end
    end
  end

  Selection.tickers.each do |ticker|
    it "is preempted for others though its time limits are over again and again: #{ticker}" do
      done = false
      Heddle.run(ticker:, preempt: :all) do
        Fiber.schedule do
          sleep(0) until Fiber.scheduler.stats.dig(:run_queue, :preemptions_count) >= 100
          done = true
        end
        Fiber.schedule do
          until done
            begin
              Timeout.timeout(0.0002) { nil until done }
            rescue Timeout::Error
              next
            end
          end
        end
      end
      expect(done).to be true
    end
  end

  it "in a generator cannot be resumed by another fiber meanwhile" do
    refused = Heddle.run do
      found = nil
      done = false
      inner = nil
      begun = false
      fiber = YieldingFiber.schedule do
        inner = Fiber.new { (begun = true) && (nil until done) }
        inner.resume
      end
      pass_until { begun }
      begin
        inner.resume
      rescue FiberError => e
        found = e.class
      end
      done = true
      sleep(0) while fiber.alive?
      found
    end
    expect(refused).to eq FiberError
  end
end
