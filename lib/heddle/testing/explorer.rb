# frozen_string_literal: true

module Heddle
  module Testing
    # Runs the program under many schedules, until a run fails.
    class Explorer
      USUAL = Schedule::Recorded.new(deviations: [])
      private_constant :USUAL

      # @param program [Proc]
      # @param settings [Settings]
      # @param command [Proc] returns the words of the command that runs this test
      def initialize(program, settings, command)
        @program = program
        @settings = settings
        @diagnosis = Diagnosis.new(settings, command) { |schedule, story| run(schedule, story:) }
        @coverage = Coverage.new
        @runs = @steps = 0
        @patient = false
        @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # @return [Summary]
      # @raise [Failure, Diverged]
      def call
        expect_no_scheduler
        complete = Surroundings.noted { with_clock { with_random { noticing { explore } } } }
        Summary.new(runs: @runs, steps: @steps, lines: @coverage.lines, preempted: @coverage.preempted,
                    complete: complete == true)
      end

      private

      def expect_no_scheduler
        return unless Fiber.scheduler

        raise "Heddle::Testing.explore: this thread has a scheduler already: call it outside of Heddle.run, since " \
              "each run has a scheduler of its own"
      end

      def with_clock(&)
        return yield unless @settings.idle

        require_relative "virtual_clock"
        ClockPatches.during(&)
      end

      def noticing(&program)
        traced = @settings.detectors.reduce(program) { |inner, detector| -> { detector.noticing(&inner) } }
        Run.noticing(@settings.files, &traced)
      end

      # Afterwards `Random` continues with a number that was drawn before, and does not repeat itself.
      def with_random
        continued = Kernel.rand(2**64)
        yield
      ensure
        Kernel.srand(continued) if continued
      end

      # @return [Boolean, Object] true if all schedules within the bound have run
      def explore
        return replay(@settings.schedule) if @settings.schedule
        return try_seed(@settings.seed) if @settings.seed

        try_kept if @settings.keep
        return try_all? if @settings.strategy == :exhaustive

        @settings.runs.times do |seed|
          try_seed(seed)
          break if over?
        end
      end

      # The schedules that have failed before.
      def try_kept
        Schedule.read(@settings.keep).each { |schedule| try(schedule) }
      end

      def try(schedule, seed = nil)
        outcome = run(schedule)
        @diagnosis.fail_with(outcome.error, schedule, seed, @runs) if outcome.error
        outcome
      end

      # @return [Boolean] whether the time of the settings has passed
      def over?
        seconds = @settings.seconds
        !seconds.nil? && Process.clock_gettime(Process::CLOCK_MONOTONIC) - @began >= seconds
      end

      def try_seed(seed)
        outcome = try(schedule(seed), seed)
        @usual_steps ||= outcome.steps if seed.zero?
      end

      def schedule(seed)
        return USUAL if seed.zero?
        return Schedule::Random.new(seed:) unless @settings.strategy == :pct

        @usual_steps ||= run(USUAL).steps
        Schedule::Priorities.new(seed:, depth: @settings.depth, steps: @usual_steps)
      end

      # @return [Boolean] whether these were all schedules within the bound
      def try_all?
        search = Search.new(preemptions: @settings.preemptions, runs: @settings.runs) do |schedule|
          run(schedule).tap { search.stop if over? }
        end
        failed, schedule = search.find
        @diagnosis.fail_with(failed.error, schedule, nil, @runs) if failed
        search.complete?
      end

      def replay(schedule)
        outcome = try(schedule)
        missing = (schedule.deviations - outcome.deviations).first or return

        raise Diverged, "Heddle::Testing.explore: the run does not fail, and diverges from its schedule: where fiber " \
                        "#{missing[0]} makes its decision #{missing[1]}, fiber #{missing[2]} is not runnable, or the " \
                        "run never comes there. The program has changed, or something outside of the schedule decides"
      end

      def run(schedule, story: nil)
        outcome = attempt(schedule, story)
        outcome = repeat_patiently(schedule, story) if outcome.error && outcome.jumps&.any? && !@patient
        raise outcome.error if Testing.verdicts.any? { |type| outcome.error.is_a?(type) }

        outcome
      end

      def attempt(schedule, story)
        Kernel.srand(schedule.data)
        @runs += 1
        outcome = @diagnosis.telling_exit(schedule, @runs) do
          waits = { idle_factor: @idle_factor, patient: @patient }
          Run.new(@program, @settings, coverage: @coverage, story:, waits:).call(schedule)
        end
        @coverage.end_run
        @idle_factor = outcome.jumps&.idle_factor
        @steps = [@steps, outcome.steps].max
        outcome
      end

      # A clock that has learned to wait less may have jumped too early. A failure counts if it comes again with a clock
      # that always waits as long as at first. All runs that look into the failure then have such a clock.
      def repeat_patiently(schedule, story)
        @patient = true
        attempt(schedule, story && Story.new).tap { |outcome| @patient = !outcome.error.nil? }
      end
    end
    private_constant :Explorer
  end
end
