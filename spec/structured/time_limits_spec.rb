# frozen_string_literal: true

# What happens in a block with a time limit that takes too long.
RSpec.describe "The time limit" do
  let(:short) { 10 }
  let(:custom) { Class.new(StandardError) }

  describe "of Heddle.cancel_after" do
    it "is not handled by a rescue of StandardError in the block, whatever error it raises outside" do
      attempt = lambda do
        virtually do
          Heddle.cancel_after(short, custom) do
            sleep
          rescue StandardError
            :rescued
          end
        end
      end

      expect(&attempt).to raise_error(custom)
    end

    it "is not lost in a retry in the block" do
      attempt = lambda do
        virtually do
          Heddle.cancel_after(short, custom.new("late")) do
            sleep
          rescue StandardError
            retry
          end
        end
      end

      expect(&attempt).to raise_error(custom, "late")
    end

    it "raises a Heddle::Cancelled inside of the block" do
      inside = nil
      attempt = lambda do
        virtually do
          Heddle.cancel_after(short, custom) do
            sleep
          rescue Heddle::Cancelled => e
            inside = e
            raise
          end
        end
      end

      expect(&attempt).to(raise_error(custom) { |error| expect(error.cause).to equal(inside) })
      expect(inside).to be_a(Heddle::Cancelled)
    end

    it "raises the error itself inside of the block, if it is no StandardError" do
      error = NotImplementedError.new("late")
      inside = nil
      virtually do
        Heddle.cancel_after(short, error) do
          sleep
        rescue NotImplementedError => e
          inside = e
        end
      end

      expect(inside).to equal(error)
    end

    it "has the backtrace of the block's wait" do
      line = trace = nil
      Heddle.run do
        Heddle.cancel_after(0.01, custom) do
          line = __LINE__ + 1
          sleep
        end
      rescue custom => e
        trace = e.backtrace
      end

      expect(trace.first).to start_with("#{__FILE__}:#{line}:")
    end

    it "accepts an error that is frozen" do
      attempt = -> { virtually { Heddle.cancel_after(short, custom.new("late").freeze) { sleep } } }

      expect(&attempt).to raise_error(custom, "late")
    end

    it "is raised again at the next wait of a block that swallows it" do
      swallowed = 0
      attempt = lambda do
        virtually do
          Heddle.cancel_after(short) do
            swallowed = swallow_in_sleep(3)
            sleep
          end
        end
      end

      expect(&attempt).to raise_error(Heddle::TimeoutError)
      expect(swallowed).to eq(3)
    end

    it "is raised again in a CPU-bound block" do
      raised = []
      attempt = lambda do
        Heddle.run(preempt: :all) { Heddle.cancel_after(0.01, custom) { compute_until_raised(raised, 3) } }
      end

      expect(&attempt).to raise_error(custom)
      expect(raised.size).to eq(3)
    end

    it "is not raised again after the block" do
      value = virtually do
        Heddle.cancel_after(short) { swallow_in_sleep(2) }
        sleep(short) && :undisturbed
      end

      expect(value).to eq(:undisturbed)
    end

    it "doesn't interrupt an ensure that waits" do
      waited = false
      attempt = lambda do
        virtually do
          Heddle.cancel_after(short) do
            sleep
          ensure
            sleep(short)
            waited = true
          end
        end
      end

      expect(&attempt).to raise_error(Heddle::TimeoutError)
      expect(waited).to be(true)
    end

    it "does not raise the error of another call" do
      events = []
      outer = custom
      virtually do
        Heddle.cancel_after(short, outer) do
          Heddle.cancel_after(60, KeyError) { sleep }
        rescue KeyError
          events << :inner
        end
      rescue outer
        events << :outer
      end

      expect(events).to eq([:outer])
    end

    it "works in a thread's root fiber, too" do
      attempt = lambda do
        with_scheduler do
          Heddle.cancel_after(0.01, custom) do
            sleep
          rescue StandardError
            :rescued
          end
        end
      end

      expect(&attempt).to raise_error(custom)
    end
  end

  describe "of Heddle.move_on_after" do
    it "is raised again at the next wait of a block that swallows it" do
      swallowed = 0
      value = virtually do
        Heddle.move_on_after(short, value: :moved_on) do
          swallowed = swallow_in_sleep(3)
          sleep
        end
      end

      expect([value, swallowed]).to eq([:moved_on, 3])
    end

    it "returns the block's value if the block swallows it and does not wait again" do
      expect(virtually { Heddle.move_on_after(short) { swallow_in_sleep(1) } }).to eq(1)
    end
  end
end
