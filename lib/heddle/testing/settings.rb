# frozen_string_literal: true

module Heddle
  module Testing
    # The checked options of {Testing.explore}.
    class Settings
      METHOD = "Heddle::Testing.explore"
      CLOCKS = %i[real virtual].freeze
      STRATEGIES = %i[random pct exhaustive].freeze
      DEFAULTS = { runs: nil, seconds: nil, strategy: :random, seed: nil, schedule: nil, depth: 3, preemptions: 2,
                   steps: 100_000, paths: nil, backend: nil, cooperative: nil, trace: nil, clock: nil,
                   idle: 0.05, limits: false, keep: nil, detect: [] }.freeze
      # What a run may be examined for, besides its errors.
      DETECTORS = { lock_order: LockOrders, races: Races }.freeze
      RUNS = 1_000
      # How many runs there are at most within a time.
      RUNS_IN_TIME = 100_000
      HIGHEST_SEED = (2**64) - 1
      # The values of `depth:`. A schedule keeps so many places.
      DEPTHS = 1..1_000
      # The highest value of `idle:`: a day, as for `grace:` of a scheduler.
      LONGEST_IDLE = 86_400
      private_constant :METHOD, :CLOCKS, :STRATEGIES, :DEFAULTS, :DETECTORS, :RUNS, :RUNS_IN_TIME, :HIGHEST_SEED,
                       :DEPTHS, :LONGEST_IDLE

      attr_reader :runs, :strategy, :seed, :schedule, :depth, :preemptions, :steps, :files, :backend, :trace, :keep
      # @return [Numeric, nil] after how many seconds there is no further run
      attr_reader :seconds
      # @return [Array<String>, nil]
      attr_reader :cooperative
      # @return [Array<Class>] what runs are examined for
      attr_reader :detectors
      # @return [Boolean] whether a schedule also decides when limits elapse
      attr_reader :limits
      # @return [Numeric, nil] for a virtual clock: see {Testing.run}
      attr_reader :idle

      # @return [Boolean] whether the clock is a virtual one
      # @raise [ArgumentError, TypeError]
      def self.virtual?(clock, idle, method)
        ArgumentChecks.one_of(clock, "#{method}: clock", CLOCKS)
        if ArgumentChecks.seconds(idle, "#{method}: idle") > LONGEST_IDLE
          raise ArgumentError, "#{method}: idle: must be seconds from 0 to #{LONGEST_IDLE}, not #{idle.inspect}"
        end

        clock == :virtual
      end

      # @param caller_path [String, nil] the file that calls
      # @param options [Hash] see {Testing.explore}
      def initialize(caller_path, options)
        options = complete(options)
        @strategy = ArgumentChecks.one_of(options[:strategy], "#{METHOD}: strategy", STRATEGIES)
        set_replay(*options.values_at(:seed, :schedule))
        limit_runs(options)
        @depth = count(options, :depth, DEPTHS)
        @preemptions = count(options, :preemptions, 0..)
        @steps = count(options, :steps)
        @files = ProgramFiles.new(caller_path, paths_of(options[:paths]))
        limit_time(options)
        @detectors = detectors_of(options[:detect])
        @backend = options[:backend]
        @cooperative = options[:cooperative]
        @trace = path_of(options, :trace)
        @keep = path_of(options, :keep)
      end

      private

      # nil stands for an option's default.
      def complete(options)
        unknown = options.keys - DEFAULTS.keys
        return DEFAULTS.merge(options.compact) if unknown.empty?

        raise ArgumentError, "#{METHOD}: there is no option #{unknown.first}:, but #{DEFAULTS.keys.join(":, ")}:"
      end

      def set_replay(seed, schedule)
        check_seed_alone(seed, schedule) if seed
        @seed = seed_of(seed, "seed")
        @schedule = schedule_of(schedule, "schedule")
        return if @seed || @schedule

        @schedule = schedule_of(ENV.fetch("HEDDLE_SCHEDULE", nil), "HEDDLE_SCHEDULE")
        @seed = seed_of(ENV.fetch("HEDDLE_SEED", nil), "HEDDLE_SEED") unless @schedule || @strategy == :exhaustive
      end

      def limit_time(options)
        @limits = limits_of(options)
        clock = options[:clock] || (@limits ? :virtual : :real)
        @idle = options[:idle] if Settings.virtual?(clock, options[:idle], METHOD)
      end

      def limit_runs(options)
        @seconds = options[:seconds]&.then { |seconds| ArgumentChecks.seconds(seconds, "#{METHOD}: seconds") }
        @runs = options[:runs] ? count(options, :runs) : environment_runs
      end

      def count(options, name, range = 1..)
        ArgumentChecks.count(options[name], "#{METHOD}: #{name}", range)
      end

      def seed_of(value, name)
        return if value.nil?

        seed = value.is_a?(String) ? Integer(value.b, 10, exception: false) : value
        return seed if seed.is_a?(Integer) && seed.between?(0, HIGHEST_SEED)

        error = seed.nil? || seed.is_a?(Integer) ? ArgumentError : TypeError
        raise error, "#{METHOD}: #{name} must be an Integer from 0 to #{HIGHEST_SEED}, not #{value.inspect}"
      end

      def schedule_of(value, name)
        return if value.nil?
        return Schedule.parse(value, "#{METHOD}: #{name}") if value.is_a?(String)

        raise TypeError, "#{METHOD}: #{name} must be a String, as a report prints it, not #{value.inspect}"
      end

      def environment_runs
        text = ENV.fetch("HEDDLE_EXPLORE", nil) or return @seconds ? RUNS_IN_TIME : RUNS
        return Integer(text, 10) if text.b.match?(/\A[1-9]\d*\z/)

        raise ArgumentError, "#{METHOD}: HEDDLE_EXPLORE must be an Integer of at least 1, not #{text.inspect}"
      end

      def paths_of(paths)
        return if paths.nil?
        unless paths.is_a?(Array) && !paths.empty? && paths.all?(String)
          raise TypeError, "#{METHOD}: paths: must be an Array of Strings, not #{paths.inspect}"
        end

        missing = paths.find { |path| !File.exist?(path) } or return paths

        raise ArgumentError, "#{METHOD}: paths: there is no file or folder #{File.expand_path(missing).inspect}: " \
                             "give those whose lines are points"
      end

      def limits_of(options)
        limits = options[:limits]
        return limits if limits == false || (limits == true && options[:clock] != :real)
        raise TypeError, "#{METHOD}: limits: must be true or false, not #{limits.inspect}" unless limits == true

        raise ArgumentError, "#{METHOD}: limits: true needs clock: :virtual, not clock: :real, as limits elapse by it"
      end

      def detectors_of(kinds)
        [*kinds].uniq.map do |kind|
          DETECTORS.fetch(kind) do
            raise ArgumentError, "#{METHOD}: detect: must be of #{DETECTORS.keys.map(&:inspect).join(", ")}, not " \
                                 "#{kind.inspect}"
          end
        end
      end

      def path_of(options, name)
        path = options[name]
        return path if path.nil? || path.is_a?(String) || path.respond_to?(:to_path)

        raise TypeError, "#{METHOD}: #{name}: must be a path, as a String or a Pathname, not #{path.inspect}"
      end

      def check_seed_alone(seed, schedule)
        if schedule
          raise ArgumentError, "#{METHOD}: seed: #{seed.inspect} and schedule: #{schedule.inspect} name a schedule " \
                               "each: give one of them"
        end
        return unless @strategy == :exhaustive

        raise ArgumentError, "#{METHOD}: strategy: :exhaustive has no seeds: replay a schedule by schedule:, which " \
                             "the report names"
      end
    end
    private_constant :Settings
  end
end
