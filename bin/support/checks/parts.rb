# frozen_string_literal: true

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
        (1..SLICES).map { |slice| spec(combination, number, slice) }
      end
    end

    def spec(combination, number, slice)
      what = [combination.backend, *combination.ticker].join(", ")
      rake("specs, Ruby #{combination.ruby}, #{what} (#{slice} of #{SLICES})", rubies.fetch(combination.ruby), "spec",
           environment: { **choice(combination, number), "HEDDLE_SLICE" => "#{slice}/#{SLICES}" },
           after: [compiled(combination.ruby)], cpus: RSPEC_CPUS)
    end

    # See spec/support/selection.rb.
    def choice(combination, number)
      always = { "HEDDLE_BACKEND" => combination.backend, "SPEC_OPTS" => "--seed #{seed}" }
      return always if all?

      { **always, "HEDDLE_TICKER" => combination.ticker, "HEDDLE_COMBINATION" => number.to_s,
                  "HEDDLE_COMBINATIONS" => combinations.map(&:backend).join(" ") }
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
      # Two at once would write the same file.
      checks.each_cons(2) { |before, check| check.after << before.name }
      checks << rake("the source gem", @first, "package:check_source", after: compiled_all) if all?
      checks
    end
  end
end
