# frozen_string_literal: true

RSpec.describe "A termination of a CPU-bound fiber" do
  let(:grace) { 0.1 }

  it "is raised again when the fiber swallows it" do
    raised = []
    begun = false
    Heddle.run(preempt: :all) do
      fiber = Heddle.spin { compute_until_raised(raised, 3) { begun = true } }
      pass_until { begun }
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end

    expect(raised.size).to eq(3)
  end

  it "doesn't interrupt its ensure" do
    begun = computed = false
    Heddle.run(preempt: :all) do
      fiber = Heddle.spin do
        loop { begun = true }
      ensure
        compute_for(0.1)
        computed = true
      end
      pass_until { begun }
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end

    expect(computed).to be(true)
  end

  {
    "swallows it again and again" => -> { loop { Integer.sqrt(2) } },
    "masks it" => -> { Thread.handle_interrupt(Exception => :never) { loop { Integer.sqrt(2) } } }
  }.each do |name, compute|
    it "ends the fiber after the grace if the fiber #{name}, and other fibers are preempted as before" do
      begun = false
      runs = 0
      text = captured_stderr do
        Heddle.run(grace:, preempt: :all) do
          fiber = Heddle.spin { swallow { (begun = true) && compute.call } }
          pass_until { begun }
          Heddle.stop(fiber)
          Heddle.await(fiber)
          other = Heddle.spin { Integer.sqrt(2) while runs < 10 }
          10.times do
            sleep(0)
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
