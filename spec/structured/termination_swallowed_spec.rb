# frozen_string_literal: true

RSpec.describe "A termination that the fiber swallows" do
  let(:grace) { 0.1 }

  it "is raised again at the fiber's next wait" do
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

  it "does not change the fiber's value if the fiber does not wait again" do
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
    it "with #{way} in an ensure is raised again at the fiber's next wait" do
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

  it "is raised again in the body of a rescue of another error" do
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

  it "lets the other fibers run" do
    runs = 0
    over = false
    virtually(grace: 60) do
      fiber = Heddle.spin do
        swallow_in_sleep(1) until over
      end
      Heddle.snooze
      Heddle.stop(fiber)
      10.times do
        sleep(1)
        runs += 1
      end
      runs = :starved unless fiber.alive?
      over = true
      Heddle.await_all(fiber)
    end

    expect(runs).to eq(10)
  end

  Waits::KINDS.each do |kind, wait|
    # A name resolution ends by itself, perhaps at once.
    next if kind == "name resolution"

    context "when it waits in #{kind}" do
      # While a generator waits, the scheduler can't tell whether the fiber that resumed it unwinds. Then the grace
      # counts.
      in_a_generator = kind.include?("generator") || kind.include?("resumed")
      it "is raised again at the same wait", unless: in_a_generator do
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

      it "ends the fiber after the grace, if the fiber swallows it again and again" do
        threads = Thread.list
        line = captured_stderr { run_and_terminate(grace:) { swallow(&wait) } }
        # The `ensure` clauses of an abandoned fiber do not run, so the thread that it waited for may be left.
        (Thread.list - threads).reject { |thread| Tidiness::LASTING_THREADS.include?(thread.name) }.each(&:kill)

        expect(line).to include("#{__FILE__}:#{__LINE__ - 4} (suspended)> has not ended")
      end
    end
  end
end
