# frozen_string_literal: true

require "etc"
require_relative "part"

module Checks
  # The parts that are in the quick run of bin/test, too.
  module Parts
    # How much of a CPU they keep busy beside each other: RSpec waits more than it computes.
    RSPEC_CPUS = 0.4
    LINT_CPUS = 0.4
    # So that a lint runs beside two compilers.
    COMPILER_CPUS = 0.8
    # How many RSpec processes share the examples of a combination.
    SLICES = 2
    # What does not run on disturbed threads: rakelib/disturbed.rake lists the others.
    PROGRAMS = "verification/differential"
    PROJECT_GEMFILE = "gemfiles/project.gemfile"
    # Where the examples with the tag `:timed` are.
    TIMED = "spec/preemption"

    private

    def rake(name, ruby, *tasks, environment: {}, **)
      command = [ruby, "-rbundler/setup", "-e", 'load Gem.bin_path("rake", "rake")', *tasks]
      Part.new(name:, command:, environment: { "BUNDLE_GEMFILE" => Plan::SPECS_GEMFILE, **environment }, **)
    end

    # Fails if Cargo.lock isn't up to date, before another command updates it silently.
    def crates = Part.new(name: "the lock file", command: %w[cargo fetch --locked --quiet])

    def compile
      rubies.map { |version, ruby| rake(compiled(version), ruby, "compile", after: [crates.name], cpus: COMPILER_CPUS) }
    end

    def compiled(version) = "compile for Ruby #{version}"

    def compiled_all = rubies.keys.map { |version| compiled(version) }

    def specs
      combinations.each_with_index.flat_map do |combination, number|
        next disturbed(combination, number) if disturbed?(number)

        (1..SLICES).map { |slice| spec(combination, number, slice) }
      end
    end

    def spec(combination, number, slice)
      what = [combination.backend, *combination.ticker].join(", ")
      rake("specs, Ruby #{combination.ruby}, #{what} (#{slice} of #{SLICES})", rubies.fetch(combination.ruby), "spec",
           environment: { **choice(combination, number), "HEDDLE_SLICE" => "#{slice}/#{SLICES}" },
           after: [compiled(combination.ruby)], cpus: RSPEC_CPUS)
    end

    # The combinations whose examples run on disturbed threads, so that luck is found before a user finds it: all but
    # the first, of which the second has every library, and the last each Ruby's and each backend's own examples.
    def disturbed?(number) = all? && (number.positive? || combinations.one?)

    def disturbed(combination, number)
      name = "specs, Ruby #{combination.ruby}, #{combination.backend}"
      ruby = rubies.fetch(combination.ruby)
      options = { after: [compiled(combination.ruby)], cpus: RSPEC_CPUS }
      environment = choice(combination, number)
      [rake("#{name}, disturbed", ruby, "disturbed", environment:, **options),
       (programs(name, ruby, environment, options) if each_once.include?(combination))]
    end

    def programs(name, ruby, environment, options)
      rake("#{name}, programs", ruby, "spec", environment: { **environment, "SPEC" => PROGRAMS }, **options)
    end

    # The documents and the tools, with the gems that these need.
    def project
      gemfile = [PROJECT_GEMFILE, "Gemfile", Plan::SPECS_GEMFILE].find { |path| bundled?(@first, path) }
      environment = { "BUNDLE_GEMFILE" => gemfile, "HEDDLE_BACKEND" => backends.first, "SPEC" => "spec/project",
                      "SPEC_OPTS" => "--seed #{seed}" }
      rake("specs of the documents and tools", @first, "spec", after: compiled_all, cpus: RSPEC_CPUS, environment:)
    end

    # See spec/support/selection.rb.
    def choice(combination, number)
      chosen = { "HEDDLE_BACKEND" => combination.backend, "SPEC_OPTS" => "--seed #{seed}", "HEDDLE_TIMED" => "none",
                 "HEDDLE_COMBINATION" => number.to_s, "HEDDLE_COMBINATIONS" => combination_names.join(" ") }
      all? ? chosen : { **chosen, "HEDDLE_QUICK" => "1", "HEDDLE_TICKER" => combination.ticker }
    end

    def combination_names = combinations.map { |combination| "#{combination.ruby}/#{combination.backend}" }

    # The examples whose subject is real time, with nothing beside them.
    def timed
      rubies.map do |version, ruby|
        rake("timed specs, Ruby #{version}", ruby, "spec", after: compiled_all, cpus: Etc.nprocessors,
                                                           environment: { "HEDDLE_TIMED" => "only", "SPEC" => TIMED })
      end
    end

    def lints
      [
        if answers?("cargo", "fmt", "--version")
          Part.new(name: "cargo fmt", command: %w[cargo fmt --all --check], cpus: LINT_CPUS)
        else
          leave_out("the formatting of Rust", "cargo fmt is not installed")
        end,
        if bundled?(@first, "Gemfile")
          rake("RuboCop and YARD", @first, "rubocop", "yard", environment: { "BUNDLE_GEMFILE" => "Gemfile" },
                                                              cpus: LINT_CPUS)
        else
          leave_out("RuboCop and YARD", "the gems of the Gemfile are not installed")
        end
      ]
    end

    def answers?(*command) = system(*command, %i[out err] => File::NULL)

    # After compiling, for which all others wait.
    def rust
      clippy = answers?("cargo", "clippy", "--version") || leave_out("clippy", "cargo clippy is not installed")
      tests = { "the core's own tests" => "cargo_test", **(clippy ? { "clippy" => "clippy" } : {}),
                **(all? ? { "models" => "models" } : {}) }
      tests.map do |name, task|
        rake(name, @first, task, environment: { "PROPTEST_RNG_SEED" => seed.to_s }, after: compiled_all,
                                 cpus: LINT_CPUS)
      end
    end

    # The gems, as users install them: the platform gem has all builds.
    def packages
      checks = rubies.map do |version, ruby|
        rake("the platform gem, Ruby #{version}", ruby, "package:check", after: compiled_all, cpus: LINT_CPUS)
      end
      checks << rake("the source gem", @first, "package:check_source", after: compiled_all) if all?
      checks << rake("the gem without its extension", @first, "package:check_without_extension", after: compiled_all,
                                                                                                 cpus: LINT_CPUS)
      # Two at once would write the same file.
      checks.each_cons(2) { |before, check| check.after << before.name }
    end
  end
end
