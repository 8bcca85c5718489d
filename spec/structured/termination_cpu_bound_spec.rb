# frozen_string_literal: true

RSpec.describe "A termination of a CPU-bound fiber" do
  let(:grace) { 0.1 }

  it "is raised again when the fiber swallows it" do
    raised = []
    Heddle.run(preempt: :all) do
      fiber = Heddle.spin { compute_until_raised(raised, 3) }
      sleep(0.001)
      Heddle.terminate(fiber)
      Heddle.await(fiber)
    end

    expect(raised.size).to eq(3)
  end

  it "doesn't interrupt its ensure" do
    computed = false
    Heddle.run(preempt: :all) do
      fiber = Heddle.spin do
        loop { Integer.sqrt(2) }
      ensure
        compute_for(0.1)
        computed = true
      end
      sleep(0.001)
      Heddle.terminate(fiber)
      Heddle.await(fiber)
    end

    expect(computed).to be(true)
  end

  {
    "swallows it again and again" => -> { loop { Integer.sqrt(2) } },
    "masks it" => -> { Thread.handle_interrupt(Exception => :never) { loop { Integer.sqrt(2) } } }
  }.each do |name, compute|
    it "ends the fiber after the grace if the fiber #{name}, and other fibers are preempted as before" do
      runs = 0
      text = captured_stderr do
        Heddle.run(grace:, preempt: :all) do
          fiber = Heddle.spin { swallow(&compute) }
          sleep(0.001)
          Heddle.terminate(fiber)
          Heddle.await(fiber)
          other = Heddle.spin { Integer.sqrt(2) while runs < 10 }
          10.times do
            sleep(0.001)
            runs += 1
          end
          Heddle.await(other)
        end
      end

      expect([text.lines.size, runs]).to eq([1, 10])
    end
  end

  it "does not keep a killed thread from ending" do
    begun = Queue.new
    thread = Thread.new do
      Heddle.run(grace:, preempt: :all) do
        Fiber.schedule { swallow { begun.push(true) && loop { Integer.sqrt(2) } } }
        sleep
      end
    end
    begun.pop
    captured_stderr { thread.kill.join }

    expect(thread).not_to be_alive
  end
end
