# frozen_string_literal: true

RSpec.describe "Heddle.without_preemption" do
  # Computes for several ticks and quanta of CPU time, so that a possible preemption occurs.
  def compute_for_a_while
    finish = Clock.cpu + 0.01
    nil until Clock.cpu > finish
  end

  # Runs the block in a yielding fiber while another fiber is always due. The block gets the list of events, in which
  # the other fiber records its runs.
  def beside_others(**)
    events = []
    Heddle.run(quantum: 0.001, tick: 0.0005, **) do
      over = false
      Fiber.schedule do
        until over
          events << :other unless events.last == :other
          sleep(0)
        end
      end
      YieldingFiber.schedule do
        yield events
      ensure
        over = true
      end
    end
    events
  end

  # Computes until the other fiber has run, which requires a preemption.
  def others_run_meanwhile?(events)
    events << :mine
    nil until events.last == :other
    true
  end

  # Whether the other fiber ran during the block.
  def disturbed?(events)
    before = events.size
    yield
    events.size > before
  end

  Selection.tickers.each do |ticker|
    describe "with the ticker #{ticker}" do
      it "lets no other fiber run during its block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption { disturbed?(events << :mine) { compute_for_a_while } }
        end
        expect(disturbed).to be false
      end

      it "lets other fibers run between two blocks, although one begins where the other ends" do
        runs = 0
        beside_others(ticker:) do |events|
          3.times do
            events << :mine
            Heddle.without_preemption { compute_for_a_while } until events.last == :other
            runs += 1
          end
        end
        expect(runs).to eq 3
      end

      it "lets other fibers run between short blocks that follow each other" do
        slept = false
        Heddle.run(ticker:) do
          Fiber.schedule { slept = sleep(a_moment) }
          YieldingFiber.schedule do
            Heddle.without_preemption { 30_000.times { nil } } until slept
          end
        end
        expect(slept).to be_truthy
      end

      it "lets a time limit expire between two blocks, and not where a nested block ends" do
        events = []
        Heddle.run(ticker:) do
          YieldingFiber.schedule do
            Heddle.cancel_after(60, Timeout::Error) do |deadline|
              loop do
                Heddle.without_preemption do
                  # The limit is over within a block.
                  deadline.reset(0.002) if events.empty?
                  Heddle.without_preemption { compute_for_a_while }
                  events << :half
                  compute_for_a_while
                  events << :whole
                end
              end
            end
          rescue Timeout::Error
            events << :interrupted
          end
        end
        expect(events.last(3)).to eq %i[half whole interrupted]
      end

      it "lets other fibers run after its block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          Heddle.without_preemption { compute_for_a_while }
          disturbed = others_run_meanwhile?(events)
        end
        expect(disturbed).to be true
      end

      it "returns the block's value" do
        value = nil
        beside_others(ticker:) { value = Heddle.without_preemption { :value } }
        expect(value).to eq :value
      end

      it "may be nested, and ends with the outermost block" do
        found = []
        beside_others(ticker:) do |events|
          Heddle.without_preemption do
            Heddle.without_preemption { compute_for_a_while }
            events << :mine
            found << disturbed?(events) { compute_for_a_while }
          end
          found << others_run_meanwhile?(events)
        end
        expect(found).to eq [false, true]
      end

      leaves = {
        "an exception" => -> { Heddle.without_preemption { raise KeyError } rescue nil }, # rubocop:disable Style/RescueModifier
        "break" => -> { Heddle.without_preemption { break } },
        "next" => -> { Heddle.without_preemption { next } },
        "throw" => -> { catch(:out) { Heddle.without_preemption { throw :out } } },
        "return" => -> { -> { Heddle.without_preemption { return } }.call },
        "return from a method" => lambda {
          Class.new do
            def leave
              Heddle.without_preemption { return }
            end
          end.new.leave
        },
        "an exception out of a nested one" => lambda {
          begin
            Heddle.without_preemption { Heddle.without_preemption { raise KeyError } }
          rescue KeyError
            nil
          end
        },
        "break out of a nested one" => lambda {
          [1].each { Heddle.without_preemption { Heddle.without_preemption { break } } }
        },
        "StopIteration" => -> { loop { Heddle.without_preemption { raise StopIteration } } }
      }.freeze

      leaves.each do |name, leave|
        it "ends when its block is left by #{name}" do
          disturbed = nil
          beside_others(ticker:) do |events|
            3.times { leave.call }
            disturbed = others_run_meanwhile?(events)
          end
          expect(disturbed).to be true
        end
      end

      it "lets its block wait, and other fibers run meanwhile" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption { disturbed?(events << :mine) { sleep(a_moment) } }
        end
        expect(disturbed).to be true
      end

      it "still prevents preemption after its block has waited" do
        disturbed = nil
        beside_others(ticker:) do |events|
          Heddle.without_preemption do
            sleep(a_moment)
            disturbed = disturbed?(events << :mine) { compute_for_a_while }
          end
        end
        expect(disturbed).to be false
      end

      it "doesn't affect other CPU-bound fibers" do
        runs = Heddle.run(ticker:) do
          count = 0
          shielded = YieldingFiber.schedule { Heddle.without_preemption { sleep(0) until count > 1 } }
          2.times do
            YieldingFiber.schedule do
              mine = count += 1
              nil until count > mine || count > 1
            end
          end
          sleep(0) while shielded.alive?
          count
        end
        expect(runs).to eq 2
      end

      it "prevents preemption in a generator that is resumed in its block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          numbers = Enumerator.new do |yielder|
            yielder << disturbed?(events << :mine) { compute_for_a_while }
          end
          disturbed = Heddle.without_preemption { numbers.next }
        end
        expect(disturbed).to be false
      end

      it "prevents preemption in a fiber that is resumed in its block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption do
            Fiber.new { Fiber.new { disturbed?(events << :mine) { compute_for_a_while } }.resume }.resume
          end
        end
        expect(disturbed).to be false
      end

      it "in a generator prevents preemption in the generator's block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Enumerator.new do |yielder|
            yielder << Heddle.without_preemption { disturbed?(events << :mine) { compute_for_a_while } }
          end.next
        end
        expect(disturbed).to be false
      end

      it "in a generator doesn't affect the fiber that resumes it" do
        disturbed = nil
        beside_others(ticker:) do |events|
          numbers = Enumerator.new { |yielder| Heddle.without_preemption { yielder << 1 } }
          numbers.next
          disturbed = others_run_meanwhile?(events)
        end
        expect(disturbed).to be true
      end

      it "prevents preemption under preempt: :all, too" do
        disturbed = Heddle.run(ticker:, preempt: :all, quantum: 0.001, tick: 0.0005) do
          events = []
          over = false
          Fiber.schedule { (events << :other) && sleep(0) until over }
          Heddle.without_preemption { disturbed?(events) { compute_for_a_while } }.tap { over = true }
        end
        expect(disturbed).to be false
      end

      it "makes updates of shared state atomic" do
        count = 0
        Heddle.run(ticker:, quantum: 0.0002, tick: 0.0001) do
          8.times do
            YieldingFiber.schedule do
              2000.times do
                Heddle.without_preemption do
                  before = count
                  [before].each { |number| count = number + 1 }
                end
              end
            end
          end
        end
        expect(count).to eq 16_000
      end
    end
  end

  it "lets a time limit raise only after its block" do
    events = []
    Heddle.run(quantum: 0.001, tick: 0.0005) do
      YieldingFiber.schedule do
        Heddle.cancel_after(60, Timeout::Error) do |deadline|
          Heddle.without_preemption do
            deadline.reset(0.002)
            compute_for_a_while
            events << :whole
          end
          loop { Integer.sqrt(2) }
        end
      rescue Timeout::Error
        events << :interrupted
      end
    end
    expect(events).to eq %i[whole interrupted]
  end

  it "does nothing without a scheduler" do
    expect(Heddle.without_preemption { :value }).to eq :value
  end

  it "does nothing in a root fiber" do
    expect(with_scheduler { Heddle.without_preemption { :value } }).to eq :value
  end

  it "keeps a yielding fiber in a plain loop from yielding" do
    yielded = 0
    whole = false
    fiber = YieldingFiber.new do
      Heddle.without_preemption { Heddle.without_preemption { 3.times { compute_for_a_while } } }
      whole = true
      nil until yielded.positive?
    end
    fiber.resume
    expect(whole).to be true
    while fiber.alive?
      yielded += 1
      fiber.resume
    end
    expect(yielded).to be_positive
  end

  it "raises ArgumentError without a block" do
    expect { Heddle.without_preemption }.to raise_error(ArgumentError, /block/)
  end

  it "propagates its block's error" do
    expect { Heddle.run { Heddle.without_preemption { raise KeyError, "mine" } } }.to raise_error(KeyError, "mine")
  end

  it "may be nested a hundred deep, again and again" do
    nest = ->(level) { level.zero? ? :deep : Heddle.without_preemption { nest.call(level - 1) } }
    deep = Heddle.run(preempt: :all) { Array.new(100) { nest.call(100) }.uniq }
    expect(deep).to eq [:deep]
  end
end
