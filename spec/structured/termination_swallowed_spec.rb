# frozen_string_literal: true

RSpec.describe "A termination that the fiber swallows" do
  let(:grace) { 0.1 }

  it "is raised again at its next wait" do
    events = []
    run_and_terminate do
      begin
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        events << :swallowed
      end
      sleep
      events << :slept
    end

    expect(events).to eq([:swallowed])
  end

  it "does not change its value if it does not wait again" do
    value = run_and_terminate do
      sleep
    rescue Exception # rubocop:disable Lint/RescueException
      :value
    end

    expect(value).to eq(:value)
  end

  {
    "next" => lambda {
      [1].each do
        sleep
      ensure
        next
      end
    },
    "break" => lambda {
      loop do
        sleep
      ensure
        break
      end
    },
    "throw" => lambda {
      catch(:out) do
        sleep
      ensure
        throw(:out)
      end
    }
  }.each do |way, swallow_once|
    it "with #{way} in an ensure is raised again at its next wait" do
      swallowed = 0
      run_and_terminate do
        swallow_once.call
        swallowed += 1
        sleep
        swallowed += 1
      end

      expect(swallowed).to eq(1)
    end
  end

  it "is raised again in the body of a rescue of something else" do
    swallowed = 0
    run_and_terminate do
      raise IOError
    rescue IOError
      3.times do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        swallowed += 1
      end
      sleep
      swallowed = :slept
    end

    expect(swallowed).to eq(3)
  end

  it "lets others have their turns" do
    turns = 0
    Heddle.run(grace:) do
      fiber = Heddle.spin { swallow { sleep } }
      Heddle.snooze
      Heddle.terminate(fiber)
      10.times do
        sleep(0.001)
        turns += 1
      end
      turns = :starved unless fiber.alive?
      captured_stderr { Heddle.await(fiber) }
    end

    expect(turns).to eq(10)
  end

  Waits::KINDS.each do |kind, wait|
    # It ends by itself, perhaps at once.
    next if kind == "name resolution"

    context "in a fiber that waits in #{kind}" do
      # While a generator waits, nothing tells whether the fiber that has resumed it unwinds: there its grace counts.
      in_a_generator = kind.include?("generator") || kind.include?("resumed")
      it "is raised again when it has been swallowed there", unless: in_a_generator do
        swallowed = 0
        run_and_terminate do
          begin
            wait.call
          rescue Exception # rubocop:disable Lint/RescueException
            swallowed += 1
          end
          wait.call
        end

        expect(swallowed).to eq(1)
      end

      it "comes when the grace is over, if it is swallowed again and again" do
        line = captured_stderr { run_and_terminate(grace:) { swallow(&wait) } }

        expect(line).to include("#{__FILE__}:#{__LINE__ - 2} (suspended)> has not ended")
      end
    end
  end
end
