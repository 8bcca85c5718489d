# frozen_string_literal: true

# The caller may be preempted at any place in the methods of structured concurrency, so a fiber may end while they
# run.
RSpec.describe "Under preempt: :all, a fiber that ends at any time" do
  let(:rounds) { 3000 }

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
      Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
        rounds.times do
          fiber = start.call(-> { compute(rand(2000)) })
          compute(rand(2000))
          expect(Heddle.terminate(fiber)).to equal(fiber)
          pass_until { !fiber.alive? }
        end
      end
    end

    it "can be scheduled, if #{name} started it" do
      unknown = []
      Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
        rounds.times do
          fiber = start.call(-> { compute(rand(2000)) })
          compute(rand(2000))
          begin
            Heddle.schedule(fiber)
          rescue FiberError => e
            # It had ended before.
            unknown << e.message unless e.message.end_with?("is dead")
          end
          pass_until { !fiber.alive? }
        end
      end

      expect(unknown).to be_empty
    end
  end
end
