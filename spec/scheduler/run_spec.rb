# frozen_string_literal: true

RSpec.describe Heddle do
  describe ".run" do
    it "returns the block's value" do
      expect(described_class.run { :value }).to eq(:value)
    end

    it "returns the block's value when the block has waited" do
      value = described_class.run do
        sleep(a_moment)
        :value
      end

      expect(value).to eq(:value)
    end

    it "raises the block's error" do
      error = KeyError.new("mine")
      raised = begin
        described_class.run { raise error }
      rescue KeyError => e
        e
      end

      expect(raised).to be(error)
    end

    it "raises the block's error when the block has waited" do
      attempt = lambda do
        described_class.run do
          sleep(a_moment)
          raise KeyError, "mine"
        end
      end

      expect(&attempt).to raise_error(KeyError, "mine")
    end

    it "raises an error that isn't a StandardError" do
      expect { described_class.run { raise NotImplementedError } }.to raise_error(NotImplementedError)
    end

    it "raises exit's SystemExit" do
      expect { described_class.run { exit(3) } }.to raise_error(SystemExit) { |error| expect(error.status).to eq(3) }
    end

    it "keeps the backtrace of the block's error" do
      place = begin
        described_class.run { raise "here" }
      rescue RuntimeError => e
        e.backtrace.first
      end

      expect(place).to match(/run_spec\.rb:#{__LINE__ - 5}/)
    end

    it "runs the block in a non-blocking fiber" do
      expect(described_class.run { Fiber.current.blocking? }).to be(false)
    end

    it "runs the block on the thread that calls it" do
      expect(described_class.run { Thread.current }).to be(Thread.current)
    end

    it "runs the block with a scheduler on its thread" do
      expect(described_class.run { Fiber.current_scheduler }).to be_a(Heddle::Scheduler)
    end

    it "leaves no scheduler behind" do
      described_class.run { sleep(0) }

      expect(Fiber.scheduler).to be_nil
    end

    it "leaves no scheduler behind when the block raises" do
      begin
        described_class.run { raise "mine" }
      rescue RuntimeError
        left = Fiber.scheduler
      end

      expect(left).to be_nil
    end

    it "waits for every fiber" do
      done = []
      described_class.run { 3.times { |i| Fiber.schedule { done << i if sleep(a_moment) } } }

      expect(done).to contain_exactly(0, 1, 2)
    end

    it "waits for fibers that fibers have scheduled" do
      done = []
      described_class.run do
        Fiber.schedule do
          sleep(a_moment)
          Fiber.schedule do
            sleep(a_moment)
            Fiber.schedule { done << :innermost if sleep(a_moment) }
          end
        end
      end

      expect(done).to eq([:innermost])
    end

    it "waits for the other fibers before it raises the block's error" do
      done = []
      begin
        described_class.run do
          Fiber.schedule { done << :fiber if sleep(a_moment) }
          raise "mine"
        end
      rescue RuntimeError
        done << :raised
      end

      expect(done).to eq(%i[fiber raised])
    end

    it "starts a scheduled fiber at once, and continues when that fiber waits" do
      order = []
      # After a tick, fibers that were woken would run first.
      described_class.run(tick: 60, quantum: 60) do
        Fiber.schedule do
          order << :begun
          sleep(0)
          order << :goes_on
        end
        order << :block
      end

      expect(order).to eq(%i[begun block goes_on])
    end

    it "returns the fiber from Fiber.schedule" do
      fibers = described_class.run { [Fiber.schedule { sleep(0) }, Fiber.schedule { :at_once }] }

      expect(fibers).to all(be_a(Fiber))
    end

    it "leaves fibers dead when they have ended" do
      fiber = described_class.run { Fiber.schedule { sleep(0) } }

      expect(fiber).not_to be_alive
    end

    it "sets no scheduler on a thread that the block starts" do
      scheduler = described_class.run { Thread.new { Fiber.scheduler }.value }

      expect(scheduler).to be_nil
    end

    it "can be called again and again" do
      expect(Array.new(50) { |i| described_class.run { sleep(0) && i } }).to eq((0...50).to_a)
    end

    it "leaves no descriptor open", if: File.directory?("/proc/self/fd") do
      described_class.run { sleep(0) }
      before = Dir.children("/proc/self/fd").size
      20.times { described_class.run { sleep(a_moment) } }

      # There are fewer if the garbage collector has meanwhile closed what earlier examples left.
      expect(Dir.children("/proc/self/fd").size).to be <= before
    end

    it "runs in several threads at once, each with a scheduler of its own" do
      threads = Array.new(4) { Thread.new { described_class.run { Fiber.scheduler if sleep(a_moment) } } }

      expect(threads.map(&:value).uniq.size).to eq(4)
    end

    it "waits for a thread in which the block calls Heddle.run again" do
      value = described_class.run { Thread.new { described_class.run { :inner if sleep(a_moment) } }.value }

      expect(value).to eq(:inner)
    end

    it "refuses a call without a block" do
      expect { described_class.run }.to raise_error(ArgumentError, /block/)
    end

    it "passes its options on to the scheduler" do
      backend = described_class.run(backend: :poll, workers: 2) { Fiber.scheduler.backend }

      expect(backend).to eq(described_class::Scheduler.new(backend: :poll).backend)
    end
  end

  describe "Fiber.set_scheduler" do
    it "is the only call of Heddle that a program needs" do
      done = []
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        2.times { |i| Fiber.schedule { done << i if sleep(a_moment) } }
      end.join

      expect(done).to contain_exactly(0, 1)
    end

    it "runs everything to its end when it is called with nil" do
      done = []
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { done << :fiber if sleep(a_moment) }
      Fiber.set_scheduler(nil)

      expect(done).to eq([:fiber])
    end

    it "runs everything to its end when the scheduler's run is called" do
      done = []
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { done << :fiber if sleep(a_moment) }
      scheduler.run
      done << :run
      Fiber.set_scheduler(nil)

      expect(done).to eq(%i[fiber run])
    end
  end
end
