# frozen_string_literal: true

require "heddle"

return unless Heddle.supported?

require "objspace"
require_relative "testing/errors"
require_relative "testing/faults"
require_relative "testing/command"
require_relative "testing/surroundings"
require_relative "testing/schedule"
require_relative "testing/program_files"
require_relative "testing/clocks"
require_relative "testing/lock_orders"
require_relative "testing/races"
require_relative "testing/settings"
require_relative "testing/story"
require_relative "testing/report"
require_relative "testing/calls"
require_relative "testing/coverage"
require_relative "testing/run"
require_relative "testing/search"
require_relative "testing/shrinking"
require_relative "testing/diagnosis"
require_relative "testing/explorer"

module Heddle
  # Tests that choose the schedule. `require "heddle"` does not load this; `docs/testing.md` is its guide.
  module Testing
    # What {Testing.explore} has done, if no run failed.
    #
    # @!attribute [r] runs
    #   @return [Integer] how often the program has run
    # @!attribute [r] steps
    #   @return [Integer] how many points the longest run has passed
    # @!attribute [r] lines
    #   @return [Integer] in how many lines of the program there were points, without those that only a schedule with
    #     preemptions reaches and in which no fiber was preempted
    # @!attribute [r] preempted
    #   @return [Integer] in how many of these lines a fiber was preempted
    # @!attribute [r] complete
    #   @return [Boolean] whether these were all schedules of the program's points within the bound of `:exhaustive`.
    #     `docs/testing.md` says where the points are
    Summary = Data.define(:runs, :steps, :lines, :preempted, :complete)

    # The default of `idle:`, in seconds.
    IDLE = 0.05
    private_constant :IDLE

    @verdicts = []

    class << self
      # Runs the block as {Heddle.run} does, with a clock of its own.
      #
      # A virtual clock stands still while a fiber can run. When none can, it jumps to the next time that a fiber waits
      # for. So `sleep 3600` takes no time, and the order of all ends of waits is certain. Everything that waits obeys:
      # `sleep`, time limits, `IO.select`, `Queue#pop(timeout:)`, `Thread#join(limit)`, {Heddle.every} and so on.
      # `Process.clock_gettime`, `Time.now` and `Time.new` tell the fibers of this run the virtual time.
      #
      # What happens outside of the thread takes real time: I/O, other threads, processes. While a thread of the block
      # runs, the clock does not jump. While a fiber waits for I/O, or such a thread waits for something else, the clock
      # jumps after 16 times `idle` seconds without an event. After each such jump it waits half as long, but at
      # least `idle`. If the run fails after such a jump, the error's detailed message says so.
      #
      # @param clock [:real, :virtual]
      # @param idle [Float, Integer, Rational] seconds of real time, at most 86,400
      # @param options [Hash] see {Scheduler#initialize}
      # @yield the program
      # @return [Object] the block's value
      # @raise [Deadlock] with a virtual clock, if all fibers wait and nothing can ever wake one
      # @raise [ArgumentError, TypeError] without a block, and for invalid arguments
      # @raise [RuntimeError] with a virtual clock, if this thread has a scheduler
      # @raise the block's error
      # @example
      #   Heddle::Testing.run(clock: :virtual) do
      #     began = Time.now
      #     sleep 3600
      #     Time.now - began # => 3600.0, at once
      #   end
      def run(clock: :virtual, idle: IDLE, **options, &block)
        ArgumentChecks.block(block, "Heddle::Testing.run")
        return Heddle.run(**options, &block) unless Settings.virtual?(clock, idle, "Heddle::Testing.run")

        if Fiber.scheduler
          raise "Heddle::Testing.run: this thread has a scheduler already, whose clock cannot be changed: call it " \
                "outside of Heddle.run"
        end
        require_relative "testing/virtual_clock"
        Surroundings.noted { VirtualClock.run(idle, **options, &block) }
      end

      # In the block the current fiber sees the real time: `Time.now` and `Process.clock_gettime` are Ruby's own. Its
      # waits still end by the virtual clock.
      #
      # @yield what needs the real time
      # @return [Object] the block's value
      # @raise [ArgumentError] without a block
      # @example
      #   Heddle::Testing.real_time { Time.now }
      def real_time(&block)
        ArgumentChecks.block(block, "Heddle::Testing.real_time")
        clock = VirtualClock.current if defined?(VirtualClock)
        clock ? clock.real(&block) : yield
      end

      # Runs the block again and again, each time under another schedule, and raises the first failure.
      #
      # Each run is a {Heddle.run} of its own with `preempt: :all`. A seed decides which runnable fiber is next, and
      # where a fiber is preempted that computes: before lines, at calls and returns, after methods written in C, and at
      # branches, in the program's own files. {Heddle.without_preemption}, locks and waits have their usual effect. Seed
      # 0 is the schedule without preemptions that Heddle takes by itself; the others are random.
      #
      # An error that leaves the block or any fiber is a failure, also of a fiber of `Fiber.schedule`; so are a deadlock
      # and a run of too many steps. The failing schedule is shortened to the fewest preemptions that still fail. The
      # message of the {Failure} tells it line by line.
      #
      # The environment variable `HEDDLE_SEED` stands for `seed:`, `HEDDLE_SCHEDULE` for `schedule:`, and
      # `HEDDLE_EXPLORE` for `runs:`, where the call does not give them.
      #
      # `Random` begins with the seed of the run. So `rand`, `shuffle` and what is made from them give each run other
      # data, and the same data when it is repeated. All runs of `:exhaustive` have the data of seed 0.
      #
      # Threads that the program starts are refused, because what they do is not part of the schedule.
      #
      # @param options [Hash] nil stands for a default
      # @option options [Integer] :runs (1_000) how often the block runs at most; 100,000 if `seconds` are given
      # @option options [Float, Integer, Rational] :seconds after so many seconds no further run begins. To shorten a
      #   failing schedule takes longer
      # @option options [:random, :pct, :exhaustive] :strategy (:random) how schedules are chosen. `:pct` takes
      #   priorities and `depth - 1` changes of priority at random. `:exhaustive` takes all schedules with at most so
      #   many `preemptions`, those with few first.
      # @option options [Integer] :seed runs only the schedule with this seed, from 0 to 2**64 - 1
      # @option options [String] :schedule runs only this schedule, as a {Failure#schedule} has named it
      # @option options [Integer] :depth (3) for `:pct`: how many ordered steps the defect needs, at most 1,000
      # @option options [Integer] :preemptions (2) for `:exhaustive`: the bound
      # @option options [Integer] :steps (100_000) how many points a run may pass; a run that passes more fails
      # @option options [Array<String>] :paths the files and folders whose lines are points, which must exist. The
      #   default is the project of the calling file: the nearest folder above it with a Gemfile, a gemspec, a Rakefile
      #   or a `.git`, without the gems in it.
      # @option options [Symbol] :backend see {Scheduler#initialize}
      # @option options [Array<String>] :cooperative ([]) see {Scheduler#initialize}: no points are in this code
      # @option options [:real, :virtual] :clock (:real, or :virtual with `limits: true`) see {run}
      # @option options [Float, Integer, Rational] :idle (0.05) see {run}
      # @option options [String, #to_path] :keep a file: the shortened schedule of a failure is added to it, and the
      #   schedules in it are tried before all others. Delete lines that have become useless
      # @option options [Boolean] :limits (false) whether the schedule also decides when time limits elapse that the
      #   program sets for blocks: at any point where a tick could end one, however long it is
      # @option options [Symbol, Array<Symbol>] :detect ([]) what else is a failure. `:lock_order`: fibers of a run have
      #   locked a Mutex or a Monitor in different orders, also where that was no deadlock. `:races`: two fibers have
      #   used the same variable, Array, Hash or String, one of them writing it, and nothing has ordered them
      # @option options [String, #to_path] :trace a file: a failing schedule is written to it as a trace for Perfetto.
      #   If it cannot be written, the message of the {Failure} says so
      # @yield the program. It must begin anew each time: what it changes outside of itself, the next run finds.
      # @return [Summary]
      # @raise [Failure] if a run has failed; its cause is the error
      # @raise [Diverged] if `schedule:` cannot be followed, and the run does not fail
      # @raise [ArgumentError, TypeError] without a block, and for invalid arguments, or lines in the file of `keep:`
      # @raise [SystemCallError] if the file of `keep:` cannot be read
      # @raise [RuntimeError] if this thread has a scheduler
      # @example
      #   Heddle::Testing.explore(runs: 200) do
      #     account = Account.new(100)
      #     Heddle.await_all(Heddle.spin { account.withdraw(10) }, Heddle.spin { account.withdraw(10) })
      #     raise "lost update: #{account.balance}" unless account.balance == 80
      #   end
      def explore(**options, &block)
        ArgumentChecks.block(block, "Heddle::Testing.explore")
        explore_test(block.source_location&.first, -> { Command.words }, options, &block)
      end

      # {explore}, for a test framework.
      #
      # @api private
      # @param path [String, nil] the file of the test
      # @param command [Proc] returns the words of the command that runs the test
      # @param options [Hash] see {explore}
      def explore_test(path, command, options, &program)
        Explorer.new(program, Settings.new(path, options), command).call
      end

      # For a test framework: the options of Ruby's by which this process was started, such as `-Ilib`.
      #
      # @api private
      # @return [Array<String>]
      def ruby_options = Command.options

      # For a test framework.
      #
      # @api private
      # @return [String, nil] what to tell beside a failure: that the virtual clock of this run has jumped while a fiber
      #   waited for what comes from outside
      def jumps_over
        clock = VirtualClock.current if defined?(VirtualClock)
        VirtualClock::Jumps.of(clock.scheduler).to_note if clock
      end

      # Errors of these classes are verdicts of a test framework that are no failures, such as that a test is skipped.
      #
      # @api private
      attr_reader :verdicts
    end
  end
end
