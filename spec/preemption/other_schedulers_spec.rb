# frozen_string_literal: true

RSpec.describe "YieldingFiber" do
  it "takes keyword arguments as a Fiber does, in resume and after a yield" do
    block = ->(first, *rest, key: nil, **others) { [first, rest, key, others] }
    calls = [[[1], { key: 2, other: 3 }], [[1, [2]], {}], [[{ key: 4 }], {}], [[[1, 2]], {}]]
    outcomes = [Fiber, YieldingFiber].map do |type|
      calls.map { |arguments, keywords| type.new(&block).resume(*arguments, **keywords) }
    end
    again = YieldingFiber.new { Fiber.yield }.tap(&:resume)

    expect(outcomes.last).to eq outcomes.first
    expect(again.resume(key: 5)).to eq(key: 5)
  end

  # Its hook `fiber` knows no `storage:`.
  def simple_scheduler
    Class.new do
      def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
      def fiber_interrupt(*) = nil
      %i[block unblock kernel_sleep io_wait close].each { |hook| define_method(hook) { |*| nil } }
    end.new
  end

  it "has the storage that it is given, also under another library's scheduler" do
    seen = Thread.new do
      Fiber.set_scheduler(simple_scheduler)
      Fiber[:inherited] = 1
      storages = [{ storage: { given: 2 } }, { storage: nil }, { storage: true }, {}].map do |options|
        found = nil
        YieldingFiber.schedule(**options) { found = [Fiber[:inherited], Fiber[:given]] }
        found
      end
      expect { YieldingFiber.schedule(storage: 5) { nil } }.to raise_error(TypeError)
      [*storages, Fiber[:inherited]]
    end.value

    expect(seen).to eq [[nil, 2], [nil, nil], [1, nil], [1, nil], 1]
  end

  places = { "on the main thread" => ->(block) { block.call }, "on another thread" => lambda { |block|
    Thread.new do
      Thread.current.report_on_exception = false
      block.call
    end.value
  } }

  places.each do |place, run|
    describe "without a scheduler #{place}" do
      define_method(:run) { |&block| run.call(block) }

      it "yields when its time slice is over" do
        rounds = run do
          done = false
          fiber = YieldingFiber.new { nil until done }
          rounds = 0
          while fiber.alive?
            fiber.resume
            done = (rounds += 1) == 3
          end
          rounds
        end
        expect(rounds).to be >= 3
      end

      it "alternates with other fibers" do
        events = run do
          events = []
          fibers = Array.new(3) do |number|
            YieldingFiber.new do
              events << number
              nil until events.uniq.size == 3
            end
          end
          fibers.each { |fiber| fiber.resume if fiber.alive? } while fibers.any?(&:alive?)
          events
        end
        expect(events).to contain_exactly(0, 1, 2)
      end

      it "yields while an exception for its thread is masked, which is raised when the mask ends" do
        rounds = 0
        masked = proc do
          Thread.new(Thread.current) { |thread| thread.raise(KeyError, "masked") }.join
          done = false
          fiber = YieldingFiber.new { nil until done }
          while fiber.alive?
            fiber.resume
            done = (rounds += 1) == 3
          end
        end
        expect { run { Thread.handle_interrupt(KeyError => :never, &masked) } }.to raise_error(KeyError, "masked")
        expect(rounds).to be >= 3
      end

      # Ruby checks interrupts before it raises. A fiber that yielded there would leave the exception to another.
      it "raises what it sends to its own thread, wherever its time slices end", timeout: 120 do
        outcomes = run do
          done = false
          others = Array.new(2) { YieldingFiber.new { nil until done } }
          outcomes = nil
          raising = YieldingFiber.new do
            outcomes = Array.new(60_000) do
              Thread.current.raise(KeyError, "own")
              :not_raised
            rescue KeyError => e
              e.message
            end
          ensure
            done = true
          end
          [raising, *others].select(&:alive?).each(&:resume) until done
          outcomes
        end
        expect(outcomes.tally).to eq("own" => 60_000)
      end

      # Ruby raises the first at the mask's end, and the others when the thread waits, or is asked to check again.
      it "raises in one fiber all exceptions that were sent to its thread at once" do
        raised = run do
          raised = nil
          send_both = proc do
            Thread.new(Thread.current) { |thread| %w[first second].each { |name| thread.raise(KeyError, name) } }.join
          end
          fibers = [YieldingFiber.new do
            begin
              Thread.handle_interrupt(KeyError => :never, &send_both)
            rescue KeyError
              nil until raised
            end
          rescue KeyError => e
            raised = e.message
          end, YieldingFiber.new { nil until raised }]
          fibers.select(&:alive?).each(&:resume) while fibers.any?(&:alive?)
          raised
        end
        expect(raised).to eq "second"
      end

      it "passes the arguments of its first resume to its block, and returns its value at its end" do
        value = run { YieldingFiber.new { |first, second, *rest| [first, second, rest] }.resume(1, 2, 3, 4) }
        expect(value).to eq [1, 2, [3, 4]]
      end

      it "passes on the arguments of Fiber.yield and resume" do
        values = run do
          fiber = YieldingFiber.new { |first| [first, Fiber.yield(:yielded), Fiber.yield(:again)] }
          [fiber.resume(1), fiber.resume(2), fiber.resume(3)]
        end
        expect(values).to eq [:yielded, :again, [1, 2, 3]]
      end

      it "propagates its error" do
        expect { run { YieldingFiber.new { raise KeyError, "mine" }.resume } }.to raise_error(KeyError, "mine")
      end

      it "is interrupted by Fiber#raise at the line where it computes" do
        raised = run do
          message = nil
          fiber = YieldingFiber.new do
            loop { Integer.sqrt(2) }
          rescue KeyError => e
            message = e.message
          end
          fiber.resume
          fiber.raise(KeyError, "from outside")
          # Its slice may end once more.
          fiber.resume while fiber.alive?
          message
        end
        expect(raised).to eq "from outside"
      end

      it "is ended by Fiber#kill, and its ensure is run" do
        events = run do
          events = []
          fiber = YieldingFiber.new do
            loop { Integer.sqrt(2) }
          ensure
            events << :ensured
          end
          fiber.resume
          fiber.kill
          events << fiber.alive?
        end
        expect(events).to eq [:ensured, false]
      end

      it "may be abandoned before its end" do
        expect(run do
          10.times { YieldingFiber.new { loop { Integer.sqrt(2) } }.resume }
          GC.start
          :given_up
        end).to eq :given_up
      end

      it "may have a subclass with another initialize, as in the article" do
        subclass = Class.new(YieldingFiber) do
          attr_reader :name

          def initialize(name, &)
            @name = name
            super(&)
          end
        end
        found = run do
          done = false
          fiber = subclass.new(:named) { done ? :ended : (nil until done) || :ended }
          fiber.resume
          done = true
          value = fiber.resume while fiber.alive?
          [fiber.name, value]
        end
        expect(found).to eq %i[named ended]
      end

      it "accepts the options of Fiber.new" do
        found = run do
          YieldingFiber.new(storage: { key: :stored }, blocking: true) do
            [Fiber[:key], Fiber.current.blocking?]
          end.resume
        end
        expect(found).to eq [:stored, true]
      end

      it "raises ArgumentError without a block" do
        expect { run { YieldingFiber.new } }.to raise_error(ArgumentError, /block/)
      end
    end
  end

  it "is a subclass of Fiber" do
    expect(YieldingFiber.superclass).to be Fiber
  end

  it "is Heddle::YieldingFiber" do
    expect(YieldingFiber).to be Heddle::YieldingFiber
  end

  it "doesn't replace a constant YieldingFiber of the program" do
    output, = run_ruby('YieldingFiber = :mine; require "heddle"; p YieldingFiber, Heddle::YieldingFiber.superclass')
    expect(output).to eq ":mine\nFiber\n"
  end

  it "cannot be scheduled without a scheduler" do
    expect { YieldingFiber.schedule { nil } }.to raise_error(RuntimeError, /scheduler/)
  end

  it "cannot be scheduled without a block" do
    expect { Heddle.run { YieldingFiber.schedule } }.to raise_error(ArgumentError, /block/)
  end

  it "returns from schedule a fiber of the class it was called on" do
    subclass = Class.new(YieldingFiber)
    expect(Heddle.run { subclass.schedule { nil } }).to be_a(subclass)
  end
end
