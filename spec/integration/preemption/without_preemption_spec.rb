# frozen_string_literal: true

RSpec.describe "Heddle.without_preemption" do
  # CPU time for several ticks and quanta, so that a preemption that is possible comes.
  def compute_for_a_while
    finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.01
    nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > finish
  end

  # Runs the block in a yielding fiber while another is due all the time. The block is given what computes, and tells
  # with `events` what came when.
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

  # Computes until others have run, which they can only if they are let in.
  def others_run_meanwhile?(events)
    events << :mine
    nil until events.last == :other
    true
  end

  # Whether others ran while the block did.
  def disturbed?(events)
    before = events.size
    yield
    events.size > before
  end

  %i[signal timerfd].each do |ticker|
    describe "with the ticker #{ticker}" do
      it "keeps others out of its block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption { disturbed?(events << :mine) { compute_for_a_while } }
        end
        expect(disturbed).to be false
      end

      it "lets others in between two blocks, although the one begins where the other ends" do
        turns = 0
        beside_others(ticker:) do |events|
          3.times do
            events << :mine
            Heddle.without_preemption { compute_for_a_while } until events.last == :other
            turns += 1
          end
        end
        expect(turns).to eq 3
      end

      it "lets a time limit strike between two blocks, and not where a nested one ends" do
        events = []
        Heddle.run(ticker:) do
          YieldingFiber.schedule do
            Timeout.timeout(0.002) do
              loop do
                Heddle.without_preemption do
                  Heddle.without_preemption { compute_for_a_while }
                  events << :half
                  compute_for_a_while
                  events << :whole
                end
              end
            end
          rescue Timeout::Error
            events << :struck
          end
        end
        expect(events.last(3)).to eq %i[half whole struck]
      end

      it "lets others in after it" do
        disturbed = nil
        beside_others(ticker:) do |events|
          Heddle.without_preemption { compute_for_a_while }
          disturbed = others_run_meanwhile?(events)
        end
        expect(disturbed).to be true
      end

      it "gives the block's value" do
        value = nil
        beside_others(ticker:) { value = Heddle.without_preemption { :value } }
        expect(value).to eq :value
      end

      it "may be nested, and ends with the outermost" do
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
        it "is over when its block is left by #{name}" do
          disturbed = nil
          beside_others(ticker:) do |events|
            3.times { leave.call }
            disturbed = others_run_meanwhile?(events)
          end
          expect(disturbed).to be true
        end
      end

      it "lets its block wait, and others go on then" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption { disturbed?(events << :mine) { sleep(0.0001) } }
        end
        expect(disturbed).to be true
      end

      it "still keeps others out when its block has waited" do
        disturbed = nil
        beside_others(ticker:) do |events|
          Heddle.without_preemption do
            sleep(0.0001)
            disturbed = disturbed?(events << :mine) { compute_for_a_while }
          end
        end
        expect(disturbed).to be false
      end

      it "is no affair of other hogs" do
        turns = Heddle.run(ticker:) do
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
        expect(turns).to eq 2
      end

      it "keeps others out of a generator that is resumed in it" do
        disturbed = nil
        beside_others(ticker:) do |events|
          numbers = Enumerator.new do |yielder|
            yielder << disturbed?(events << :mine) { compute_for_a_while }
          end
          disturbed = Heddle.without_preemption { numbers.next }
        end
        expect(disturbed).to be false
      end

      it "keeps others out of a fiber that is resumed in it" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Heddle.without_preemption do
            Fiber.new { Fiber.new { disturbed?(events << :mine) { compute_for_a_while } }.resume }.resume
          end
        end
        expect(disturbed).to be false
      end

      it "in a generator keeps others out of the generator's block" do
        disturbed = nil
        beside_others(ticker:) do |events|
          disturbed = Enumerator.new do |yielder|
            yielder << Heddle.without_preemption { disturbed?(events << :mine) { compute_for_a_while } }
          end.next
        end
        expect(disturbed).to be false
      end

      it "in a generator is no affair of who resumes it", timeout: 5 do
        disturbed = nil
        beside_others(ticker:) do |events|
          numbers = Enumerator.new { |yielder| Heddle.without_preemption { yielder << 1 } }
          numbers.next
          disturbed = others_run_meanwhile?(events)
        end
        expect(disturbed).to be true
      end

      it "keeps others out in a fiber that preempt: :all preempts" do
        disturbed = Heddle.run(ticker:, preempt: :all, quantum: 0.001, tick: 0.0005) do
          events = []
          over = false
          Fiber.schedule { (events << :other) && sleep(0) until over }
          Heddle.without_preemption { disturbed?(events) { compute_for_a_while } }.tap { over = true }
        end
        expect(disturbed).to be false
      end

      it "makes updates of shared state whole" do
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

  it "lets a time limit strike only after its block" do
    events = []
    Heddle.run(quantum: 0.001, tick: 0.0005) do
      YieldingFiber.schedule do
        Timeout.timeout(0.002) do
          Heddle.without_preemption do
            compute_for_a_while
            events << :whole
          end
          loop { Integer.sqrt(2) }
        end
      rescue Timeout::Error
        events << :struck
      end
    end
    expect(events).to eq %i[whole struck]
  end

  it "does nothing without a scheduler" do
    expect(Heddle.without_preemption { :value }).to eq :value
  end

  it "does nothing in a root" do
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

  it "passes on its block's error" do
    expect { Heddle.run { Heddle.without_preemption { raise KeyError, "mine" } } }.to raise_error(KeyError, "mine")
  end

  it "may be nested a hundred deep, again and again" do
    nest = ->(level) { level.zero? ? :deep : Heddle.without_preemption { nest.call(level - 1) } }
    deep = Heddle.run(preempt: :all) { Array.new(100) { nest.call(100) }.uniq }
    expect(deep).to eq [:deep]
  end
end
