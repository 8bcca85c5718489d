# frozen_string_literal: true

require "heddle/testing"
require "tmpdir"

RSpec.describe "Heddle::Testing.explore" do
  include ExploredBank

  # The numbers of two fibers that pass five lines each, in the order in which they do.
  def order(**options)
    passed = []
    program = lambda do
      passed.clear
      fibers = [1, 2].map do |number|
        Heddle.spin(background: true) do
          passed << number
          passed << number
          passed << number
          passed << number
        end
      end
      Heddle.await_all(*fibers)
    end
    Heddle::Testing.explore(**options, &program)
    passed.join
  end

  def pass_four(passed, number)
    passed << number
    passed << number
    passed << number
    passed << number
  end

  it "raises the failure of a schedule that loses an update, with the error as its cause" do
    expect(failure.cause).to have_attributes(class: RuntimeError, message: "expected 80, got 90")
  end

  it "does not fail where the program is right under every schedule" do
    program = lambda do
      account = ExploredBank::Account.new(100)
      lock = Mutex.new
      Heddle.await_all(*Array.new(2) { Heddle.spin { lock.synchronize { account.withdraw(10) } } })
      raise "expected 80, got #{account.balance}" unless account.balance == 80
    end

    expect(Heddle::Testing.explore(runs: 100, &program).runs).to eq(100)
  end

  it "runs the program once with seed 0, without a preemption" do
    expect(order(seed: 0)).to eq("11112222")
  end

  it "gives the same schedule for the same seed" do
    expect(order(seed: 7)).to eq(order(seed: 7))
  end

  it "gives many schedules for many seeds" do
    expect((0...60).map { |seed| order(seed:) }.uniq.size).to be > 10
  end

  it "replays the failing run by its seed" do
    expect(failure(seed: failure.seed)).to be_a(Heddle::Testing::Failure)
  end

  it "replays the shortened run by its schedule" do
    found = failure

    expect(failure(schedule: found.schedule)).to have_attributes(schedule: found.schedule)
  end

  it "takes the seed from HEDDLE_SEED" do
    replayed = in_child do
      ENV["HEDDLE_SEED"] = failure.seed.to_s
      Heddle::Testing.explore(&ExploredBank::WITHDRAWALS)
    rescue Heddle::Testing::Failure => e
      e.message[/seed \d+, run \d+/]
    end

    expect(replayed).to eq("seed #{failure.seed}, run 1")
  end

  it "takes the schedule from HEDDLE_SCHEDULE" do
    replayed = in_child do
      ENV["HEDDLE_SCHEDULE"] = failure.schedule
      Heddle::Testing.explore(&ExploredBank::WITHDRAWALS)
    rescue Heddle::Testing::Failure => e
      e.schedule
    end

    expect(replayed).to eq(failure.schedule)
  end

  it "takes the number of runs from HEDDLE_EXPLORE" do
    runs = in_child do
      ENV["HEDDLE_EXPLORE"] = "3"
      Heddle::Testing.explore { nil }.runs
    end

    expect(runs).to eq(3)
  end

  it "takes no schedule again for a fiber that was woken, and is not runnable any more" do
    runs = ["woken", "woken, and raised into"].map do |how|
      Heddle::Testing.explore(strategy: :exhaustive, preemptions: 0) do
        waiting = Fiber.schedule { Fiber.scheduler.block(:gate) rescue nil } # rubocop:disable Style/RescueModifier
        Fiber.schedule do
          Fiber.scheduler.unblock(:gate, waiting)
          # It runs at once, and leaves its place in the queue.
          waiting.raise("now") unless how == "woken"
          Heddle.snooze
        end
        Fiber.schedule { Heddle.snooze }
      end.runs
    end

    expect(runs.last).to be < runs.first
  end

  it "raises nothing where an ensure clause or its method begins, as no tick could" do
    taken = []
    give_back = ->(list) { Heddle.shield { list.clear } }

    expect do
      Heddle::Testing.explore(strategy: :exhaustive, preemptions: 2, runs: 500) do
        task = Heddle.spin do
          taken << :permit
        ensure
          give_back.call(taken)
        end
        Heddle.snooze
        task.stop.await
        raise "it was not given back" if taken.any?
      end
    end.not_to raise_error
  end

  it "says that a run diverges from its schedule, and where" do
    program = -> { Heddle::Testing.explore(schedule: "0.7>3") { nil } }

    expect(&program).to raise_error(Heddle::Testing::Diverged, /where fiber 0 makes its decision 7, fiber 3 is not/)
  end

  it "fails for an error of a fiber that nothing awaits" do
    expect(failure(-> { Fiber.schedule { raise "in a fiber" } }).cause.message).to eq("in a fiber")
  end

  it "does not report the error of such a fiber on standard error" do
    expect { failure(-> { Fiber.schedule { raise "in a fiber" } }) }.not_to output.to_stderr
  end

  %i[random pct].each do |strategy|
    it "begins each run of #{strategy} with the random numbers of its seed" do
      numbers = []
      Heddle::Testing.explore(runs: 3, strategy:) { numbers << [rand, [*1..9].shuffle, Random.rand] }
      again = nil
      Heddle::Testing.explore(seed: 2, strategy:) { again = [rand, [*1..9].shuffle, Random.rand] }

      expect(numbers.uniq).to have_attributes(size: 3, last: again)
    end
  end

  it "begins each run of :exhaustive with the random numbers of seed 0" do
    numbers = []
    Heddle::Testing.explore(strategy: :exhaustive) { numbers << Heddle.await(Heddle.spin { rand }) }

    expect(numbers.uniq).to eq([Random.new(0).rand])
  end

  it "gives a shortened schedule, and one in the file of keep:, the random numbers of the run" do
    Dir.mktmpdir do |folder|
      keep = File.join(folder, "kept")
      program = -> { rand(100).then { |number| raise "found" if number == 7 } }
      schedule = failure(program, keep:).schedule

      expect([failure(program, schedule:), failure(program, keep:, runs: 1)])
        .to all(have_attributes(schedule:, switches: 0, message: a_string_starting_with("found")))
    end
  end

  it "does not repeat random numbers afterwards" do
    numbers = Array.new(2) do
      Heddle::Testing.explore(runs: 1) { nil }
      rand
    end

    expect(numbers.uniq.size).to eq(2)
  end

  it "finds the lost update of a method in a String, and names the line that evaluates it" do
    account = Class.new(ExploredBank::Account)
    account.class_eval <<~RUBY # rubocop:disable Style/EvalWithLocation -- this is what is tested
      def withdraw(amount)
        eval "balance = @balance
        @balance = balance - amount"
      end
    RUBY
    line = __LINE__ - 6
    program = lambda do
      shared = account.new(100)
      Heddle.await_all(*Array.new(2) { Heddle.spin { shared.withdraw(10) } })
      raise "lost" unless shared.balance == 80
    end

    expect(failure(program).message).to match(/explore_spec.rb:#{line} \(eval:1\) +account\.class_eval <<~RUBY/)
  end

  it "finds the lost update by priorities" do
    expect(failure(strategy: :pct)).to be_a(Heddle::Testing::Failure)
  end

  it "finds the lost update by taking all schedules with one preemption" do
    expect(failure(strategy: :exhaustive, preemptions: 1)).to be_a(Heddle::Testing::Failure)
  end

  it "says that it has taken all schedules with at most so many preemptions" do
    program = -> { Heddle.await_all(*Array.new(2) { Heddle.spin { nil } }) }

    expect(Heddle::Testing.explore(strategy: :exhaustive, preemptions: 1, &program).complete).to be(true)
  end

  # One fiber after the other, or one fiber between two lines of the other: 2 + 2 * 3.
  { 0 => 2, 1 => 8 }.each do |preemptions, expected|
    it "takes the #{expected} orders of two fibers with four lines that need at most #{preemptions} preemptions" do
      orders = []
      Heddle::Testing.explore(strategy: :exhaustive, preemptions:, runs: 100_000, backend: :poll) do
        orders << (passed = [])
        Heddle.await_all(*[1, 2].map { |number| Heddle.spin { pass_four(passed, number) } })
      end

      expect(orders.uniq.size).to eq(expected)
    end
  end

  # A fiber is preempted at one of its points, and the other one at one of as many, or at none.
  it "takes no more schedules of two fibers than their points allow with one preemption, and with two" do
    runs = [1, 2].map do |preemptions|
      Heddle::Testing.explore(strategy: :exhaustive, preemptions:, runs: 10_000, backend: :poll) do
        Heddle.without_preemption { Heddle.await_all(*Array.new(2) { Heddle.spin { pass_four([], 1) } }) }
      end.runs
    end
    points = (runs.first / 2) - 1

    expect([points, runs.last]).to match([be < 10, 2 * (1 + points + (points**2))])
  end

  it "takes all 1,862 schedules of two fibers with 30 points each that need at most two preemptions" do
    text = "def self.pass(passed)\n#{"passed << 1\n" * 26}end"
    many = Module.new { class_eval(text, __FILE__, __LINE__) }
    taken = Heddle::Testing.explore(strategy: :exhaustive, runs: 3_000, backend: :poll) do
      Heddle.without_preemption { Heddle.await_all(*Array.new(2) { Heddle.spin { many.pass([]) } }) }
    end

    expect(taken).to have_attributes(runs: 1_862, complete: true)
  end

  it "counts the lines in which there were points, and those in which a fiber was preempted" do
    few, many = [1, 100].map do |runs|
      Heddle::Testing.explore(runs:) { Heddle.await_all(*Array.new(2) { Heddle.spin { pass_four([], 1) } }) }
    end

    expect([few, many]).to match([have_attributes(lines: 7, preempted: 0), have_attributes(lines: 7, preempted: 7)])
  end

  it "does not lose an update without a preemption" do
    expect(failure(strategy: :exhaustive, preemptions: 0)).to be_nil
  end

  # Waits for another fiber by computing. The block is called again and again until that one has run.
  def spin_until_done
    done = false
    fiber = Heddle.spin { done = true }
    yield until done
    fiber.await
  end

  { random: 50, pct: 50, exhaustive: 20 }.each do |strategy, runs|
    it "lets a fiber that spins, and one that calls Thread.pass, see what another fiber does by #{strategy}" do
      passes = Heddle::Testing.explore(strategy:, runs:, steps: 500) { spin_until_done { Thread.pass } }
      spins = Heddle::Testing.explore(strategy:, runs:, steps: 5_000) { spin_until_done { [].push(1) } }

      expect([passes, spins].map(&:runs)).to eq([runs, runs])
    end
  end

  it "ends a line that only branches by the limit of steps" do
    endless = true

    expect(failure(-> { nil while endless }, steps: 1_000).cause).to be_a(Heddle::Testing::NeverEnds)
  end

  it "ends a fiber in a line that only branches, although the fiber rescues the error of the limit" do
    endless = true
    program = lambda do
      Heddle.await(Heddle.spin do
        nil while endless
      rescue Exception # rubocop:disable Lint/RescueException -- this is what is tested
        nil while endless
      end)
    end

    expect(failure(program, steps: 1_000).cause).to be_a(Heddle::Testing::NeverEnds)
  end

  %i[random pct exhaustive].each do |strategy|
    it "lets a fiber that spins in a line that only branches see what another fiber does by #{strategy}" do
      summary = Heddle::Testing.explore(strategy:, runs: 2) do
        done = false
        fiber = Heddle.spin { done = true }
        nil until done
        fiber.await
      end

      expect(summary.runs).to eq(2)
    end
  end

  it "lets an exit of the program leave the exploration, and says under which schedule it was" do
    expect { expect { Heddle::Testing.explore { exit } }.to raise_error(SystemExit) }
      .to output(/: the program exits in run 1\. Replay: HEDDLE_SCHEDULE='none' ruby /).to_stderr
  end

  %i[random pct exhaustive].each do |strategy|
    it "runs the program once by #{strategy} if its time has passed then" do
      program = -> { Heddle.await_all(Heddle.spin { nil }, Heddle.spin { nil }) }

      expect(Heddle::Testing.explore(strategy:, seconds: 0, &program)).to have_attributes(runs: 1, complete: false)
    end
  end

  it "runs the program more than 1,000 times if there is time" do
    runs = 0

    expect(failure(-> { raise "late" if (runs += 1) > 1_100 }, seconds: 3600).message).to include("run 1101;")
  end

  it "runs the program as often with priorities as it is told to" do
    expect(Heddle::Testing.explore(strategy: :pct, runs: 5) { nil }.runs).to eq(5)
  end

  it "lets an exception that another thread raises in this one leave the exploration" do
    begun = Queue.new
    reader, writer = IO.pipe
    target = Thread.current
    raiser = Thread.new do
      begun.pop
      target.raise(IOError, "from outside")
      # A second run would end.
      begun.pop && writer.close
    end

    program = -> { Heddle::Testing.explore(runs: 1) { (begun << true) && reader.read } }

    expect(&program).to raise_error(IOError, "from outside")
  ensure
    raiser.kill.join
    [reader, writer].each(&:close)
  end

  it "fails for the error of a fiber that ends after the block" do
    program = lambda do
      lock = Queue.new
      Heddle.spin(background: true) { lock.pop || raise("after the block") }
      lock.close
    end

    expect(failure(program).cause.message).to eq("after the block")
  end

  it "explores a program whose Enumerator ends" do
    outcomes = []
    Heddle::Testing.explore(runs: 5) do
      Heddle.await(Heddle.spin { [].each.next })
    rescue StopIteration => e
      outcomes << e.class
    end

    expect(outcomes).to eq([StopIteration] * 5)
  end

  it "is not loaded by require \"heddle\", nor by a run" do
    loaded = printed(<<~RUBY)
      require "heddle"
      Heddle.run(preempt: :all) { Heddle.spin(background: true) { sleep(0) } }
      print [$LOADED_FEATURES.grep(%r{heddle/(testing|rspec|minitest)}), defined?(Heddle::Testing)]
    RUBY

    expect(loaded).to eq("[[], nil]")
  end
end
