# frozen_string_literal: true

require "shellwords"
require "tmpdir"

RSpec.describe "heddle/rspec and heddle/minitest" do
  include Libraries

  account = <<~RUBY
    class Account
      attr_reader :balance

      def initialize(balance) = @balance = balance

      def withdraw(amount)
        balance = @balance
        @balance = balance - amount
      end
    end

    def withdraw_twice(account)
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { account.withdraw(10) } })
    end
  RUBY

  # Runs a file of tests, and returns what it prints.
  define_method(:outcome) do |tests, environment = {}|
    Dir.mktmpdir do |folder|
      path = File.join(folder, "bank_test.rb")
      File.write(path, account + tests)
      output, errors, = run_ruby("Dir.chdir(#{folder.dump}); $PROGRAM_NAME = 'test'; load #{path.dump}",
                                 env: environment)
      library = errors[/cannot load such file -- ((?!heddle)[\w-]+)|Could not find '(\w+)'/]
      skip_or_fail_without(library[/[\w-]+'?\z/].delete("'")) if library
      output + errors
    end
  end

  describe "RSpec" do
    # Runs an example with this metadata and this text.
    def example(metadata, text, environment = {})
      outcome(<<~RUBY, environment)
        require "heddle/rspec"
        require "rspec/autorun"
        RSpec.describe Account do
          let(:account) { Account.new(100) }
          it("is an example"#{metadata}) { #{text} }
        end
      RUBY
    end

    it "runs an example with :fibers within Heddle.run" do
      text = "expect(Fiber.scheduler).to be_a(Heddle::Scheduler)"

      expect(example(", :fibers", text)).to include("1 example, 0 failures")
    end

    it "runs other examples without a scheduler" do
      expect(example("", "expect(Fiber.scheduler).to be_nil")).to include("1 example, 0 failures")
    end

    it "ends an example with a time limit" do
      expect(example(", fibers: 0.01", "sleep")).to include("cancel_after: 0.01 s elapsed", "1 example, 1 failure")
    end

    it "runs an example with a virtual clock" do
      text = "expect(sleep(3600)).to eq(3600)"

      expect(example(", :fibers, clock: :virtual", text)).to include("1 example, 0 failures")
    end

    it "tells in the failure that a virtual clock has jumped over a wait for I/O" do
      text = "pipe = IO.pipe; pipe.first.timeout = 60; pipe.first.read"

      expect(example(", clock: :virtual", text)).to match(/IO::TimeoutError.*jumped once by 60\.0 s .* 1 failure/m)
    end

    it "explores an example, with values of let of its own for each run" do
      expect(example(", explore: 200", "withdraw_twice(account); expect(account.balance).to eq(80)"))
        .to match(/expected: 80 got: 90 .*one switch is enough:.*Replay: HEDDLE_SEED=\d+ rspec .*1 example, 1 failure/m)
    end

    it "explores an example with instance variables of its own for each run" do
      expect(outcome(<<~RUBY)).to include("1 example, 0 failures")
        require "heddle/rspec"
        require "rspec/autorun"
        RSpec.describe Account do
          before(:context) { @shared = 1 }
          before { @shared += 1 }
          it("is an example", explore: 3) { expect([@shared, (@runs ||= []) << 1]).to eq([2, [1]]) }
        end
      RUBY
    end

    it "passes an explored example that is right under every schedule" do
      expect(example(", explore: 20", "expect(account.withdraw(10)).to eq(90)")).to include("1 example, 0 failures")
    end

    [", explore: 20", ", clock: :virtual"].each do |metadata|
      it "tells a deadlock, and no Stop of the fibers in it, of an example with#{metadata.delete(",")}" do
        text = <<~RUBY
          locks = [Mutex.new, Mutex.new]
          fibers = [locks, locks.reverse].map do |one, two|
            Heddle.spin { one.synchronize { Heddle.snooze; two.synchronize { expect(account).to be_nil } } }
          end
          Heddle.spin(background: true) { Queue.new.pop }
          Heddle.await_all(*fibers)
        RUBY

        expect(example(metadata, text))
          .to match(/\A(?!.*Heddle::Stop).*Deadlock: all fibers wait.*^1 example, 1 failure$/m)
      end
    end

    it "gives the runs of an example other random numbers, and a replay those of its run" do
      text = "expect(rand(100)).not_to eq(7)"
      replay = example(", explore: 1000", text)[/HEDDLE_SEED=(\d+)/, 1]

      expect(example(", explore: 1000", text, "HEDDLE_SEED" => replay)).to include("seed #{replay}, run 1;")
    end

    it "passes the options of a Hash on" do
      expect(example(", explore: { strategy: :best }", "nil"))
        .to include("strategy: must be :random, :pct or :exhaustive")
    end

    it "tells the failures of one run with :aggregate_failures" do
      text = "expect(account.balance).to eq(1); expect(account.balance).to eq(2)"

      expect(example(", :aggregate_failures, explore: 5", text)).to match(/Got 2 failures .*seed 0, run 1;/m)
    end

    it "keeps the time limit of an example with :fibers if HEDDLE_EXPLORE is set" do
      expect(example(", fibers: 0.01", "sleep", { "HEDDLE_EXPLORE" => "2" }))
        .to match(/cancel_after: 0\.01 s elapsed .*seed 0, run 1;.*1 example, 1 failure/m)
    end

    it "does not explore the time limit of an example where limits are explored" do
      expect(example(", fibers: 5, explore: { limits: true, runs: 20 }", "expect(account.withdraw(10)).to eq(90)"))
        .to include("1 example, 0 failures")
    end

    it "leaves a pending example pending that fails under some schedule" do
      text = "pending('later'); withdraw_twice(account); expect(account.balance).to eq(80)"

      expect(example(", explore: 200", text)).to match(/one switch is enough:.*1 example, 0 failures, 1 pending/m)
    end

    it "fails for a pending example that passes under every schedule" do
      text = "pending('later'); expect(account.withdraw(10)).to eq(90)"

      expect(example(", explore: 5", text)).to match(/Expected pending 'later' to fail.*1 example, 1 failure/m)
    end

    it "leaves an example pending that skips itself" do
      expect(example(", explore: 5", "skip('later'); raise")).to include("1 example, 0 failures, 1 pending")
    end

    it "explores an example with :fibers if HEDDLE_EXPLORE is set" do
      text = "withdraw_twice(account); expect(account.balance).to eq(80)"

      expect(example(", :fibers", text, { "HEDDLE_EXPLORE" => "50" })).to include("one switch is enough:")
    end
  end

  describe "minitest" do
    # Runs a test of a class with this first line, and this text.
    def test(line, text, environment = {})
      outcome(<<~RUBY, environment)
        require "heddle/minitest"
        require "minitest/autorun"
        class AccountTest < Minitest::Test
          include Heddle::MinitestFibers
          #{line}
          def setup = @account = Account.new(100)
          def test_account = #{text}
        end
      RUBY
    end

    it "runs a test within Heddle.run" do
      expect(test("", "assert_kind_of(Heddle::Scheduler, Fiber.scheduler)")).to include("1 assertions, 0 failures")
    end

    it "explores a test, with a setup of its own for each run" do
      expect(test("explore runs: 200", "withdraw_twice(@account) && assert_equal(80, @account.balance)"))
        .to match(/Expected: 80 Actual: 90 .*one switch is enough:.*Replay: HEDDLE_SEED=\d+ ruby .* -n test_account/m)
    end

    it "quotes the name of a test with spaces in the command that replays it" do
      text = outcome(<<~RUBY)
        require "heddle/minitest"
        require "minitest/autorun"
        require "minitest/spec"
        describe Account do
          include Heddle::MinitestFibers
          explore runs: 2
          it("withdraws $10") { assert_equal(80, Account.new(100).withdraw(10)) }
        end
      RUBY

      expect(text[/^Replay: .*/].shellsplit.drop(2)).to match(["ruby", /bank_test.rb/, "-n", "test_0001_withdraws $10"])
    end

    it "counts a failed assertion as a failure" do
      expect(test("explore runs: 5", "assert_equal(1, 2)")).to include("1 failures, 0 errors")
    end

    it "counts another error as an error" do
      expect(test("explore runs: 5", "raise('wrong')")).to include("0 failures, 1 errors")
    end

    it "skips a test that skips itself" do
      expect(test("explore runs: 5", "skip('later')")).to include("0 failures, 0 errors, 1 skips")
    end

    it "explores every test if HEDDLE_EXPLORE is set" do
      text = "withdraw_twice(@account) && assert_equal(80, @account.balance)"

      expect(test("", text, { "HEDDLE_EXPLORE" => "50" })).to include("one switch is enough:")
    end
  end
end
