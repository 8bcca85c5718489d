# frozen_string_literal: true

# The caller may be preempted at any place in the methods of structured concurrency, so a fiber may end while they
# run. Thousands of fibers leave their stacks behind for a while, so each example has a process of its own.
RSpec.describe "Under preempt: :all, a fiber that ends at any time" do
  let(:rounds) { 3000 }
  let(:random) { Random.new(1) }

  def compute(steps)
    steps.times { |i| Integer.sqrt(i) }
  end

  starts = {
    "Heddle.spin" => ->(block) { Heddle.spin(&block) },
    "Fiber.schedule" => ->(block) { Fiber.schedule(&block) },
    "YieldingFiber.schedule" => ->(block) { YieldingFiber.schedule(&block) }
  }

  starts.each do |name, start|
    it "can be terminated, if #{name} started it" do
      others = in_child do
        Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
          rounds.times.count do
            fiber = start.call(-> { compute(random.rand(2000)) })
            compute(random.rand(2000))
            returned = Heddle.stop(fiber)
            pass_until { !fiber.alive? }
            !returned.equal?(fiber)
          end
        end
      end

      expect(others).to eq 0
    end
  end

  # Ruby matches the error with `===`, and checks interrupts there. A program that defines the method makes this last.
  it "is not interrupted between its block's error and its end" do
    output, _, status = run_ruby(<<~RUBY)
      require "heddle"

      def Exception.===(error)
        200_000.times { |i| Integer.sqrt(i) }
        super
      end

      failing = nil
      Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
        raiser = Fiber.schedule { loop { sleep(a_moment) && failing&.alive? && failing.raise("late") } }
        sleep(a_moment)
        3.times do
          started = Fiber.schedule { (failing = Fiber.current) && raise("error") }
          sleep(0.001) while started.alive?
        end
        raiser.kill
      end
      puts "done"
    RUBY

    expect([output, status]).to match ["done\n", be_success]
  end

  it "ends where it has only just begun, while all fibers are stopped" do
    outcomes = in_child do
      Array.new(20) do
        begun = Queue.new
        thread = Thread.new do
          Thread.current.report_on_exception = false
          Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
            begun.push(true) && sleep
          ensure
            1000.times { Fiber.schedule { compute(20) } }
          end
        end
        begun.pop
        thread.raise(KeyError)
        Outcomes.of { thread.value }.first
      end
    end

    expect(outcomes.uniq).to eq [KeyError]
  end
end
