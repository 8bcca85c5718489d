# frozen_string_literal: true

require "etc"
require "open3"

module Checks
  # The parts of bin/test --all that run whole programs, and other people's tests.
  module VerificationParts
    # Seconds of the stress program for each backend.
    STRESS = 30
    # Schedules of each differential program.
    EXPLORED = 50
    # The Ruby whose sources Debian has, and so Ruby's own tests.
    SOURCES_RUBY = "3.3"
    SOURCES = "tmp/ruby-source"
    FETCH_SOURCES = "source bin/support/debian.sh && fetch_ruby_source ruby#{SOURCES_RUBY} #{SOURCES}".freeze
    # The hooks as this Ruby calls them, and as one with the newest version of the interface does.
    INTERFACES = { "" => {}, ", interface version 5" => { "INTERFACE" => "5" } }.freeze
    JITS = %w[--yjit --zjit].freeze

    private

    # Most of these use all CPUs themselves, or look at times.
    def verification
      [stress, explored, explored_pairs, *memory, ecosystem, *own_tests, *jits]
    end

    def alone = Etc.nprocessors

    def stress
      rake("the stress program", @first, "stress", after: compiled_all, cpus: alone,
                                                   environment: { "SEED" => seed.to_s, "SECONDS" => STRESS.to_s })
    end

    # On the newest Ruby: a seed gives the same schedule on each.
    def explored
      rake("differential programs under explored schedules", rubies.values.last, "explored",
           after: compiled_all, cpus: alone, environment: { "SEED" => seed.to_s, "SEEDS" => EXPLORED.to_s })
    end

    # With fewer schedules than by default, for the time that this takes.
    def explored_pairs
      rake("Heddle's own operations under explored schedules", rubies.values.last, "explored:pairs",
           after: compiled_all, cpus: alone, environment: { "RUNS" => "20", "SEEDS" => "5" })
    end

    # GC stress and leaks.
    def memory
      tasks.grep(/\Amemory:/).map do |task|
        rake(task, @first, task, after: compiled_all, cpus: alone, environment: { "SEED" => seed.to_s })
      end
    end

    def tasks
      command = [@first, "-rbundler/setup", "-e", 'load Gem.bin_path("rake", "rake")', "--", "--tasks", "--all"]
      output, = Open3.capture2({ "BUNDLE_GEMFILE" => Plan::SPECS_GEMFILE }, *command)
      output.scan(/^rake (\S+)/).flatten
    end

    # Looks at times, and so runs alone.
    def ecosystem = rake("libraries against real servers", @first, "ecosystem:check", after: compiled_all, cpus: alone)

    # Ruby's own tests, on the Ruby whose sources Debian has. With RUBY_SRC, its source tree, nothing is downloaded.
    def own_tests
      version = rubies.keys.find { |name| name.start_with?("#{SOURCES_RUBY}.") }
      return leave_out("Ruby's own tests", "there is no Ruby #{SOURCES_RUBY}") unless version

      sources = own_sources or return []
      tree = ENV.fetch("RUBY_SRC", "#{SOURCES}/ruby")
      after = [*sources.map(&:name), *compiled_all]
      torture = { "RUBY_SRC" => tree, "MODE" => "waiting" }
      [*sources, *conformance(version, tree, after),
       rake("Ruby's own tests inside fibers", rubies[version], "torture", environment: torture, after:, cpus: alone)]
    end

    def conformance(version, tree, after)
      backends.product(INTERFACES.to_a).map do |backend, (name, environment)|
        rake("Ruby's tests of the scheduler interface, #{backend}#{name}", rubies[version], "conformance",
             environment: { "RUBY_SRC" => tree, "HEDDLE_BACKEND" => backend, **environment }, after:)
      end
    end

    # The differential programs with each just-in-time compiler. spec/preemption/jit_spec.rb starts compilers itself.
    def jits
      compilers = rubies.to_a.product(JITS).select { |(_, ruby), option| jit?(ruby, option) }
      return leave_out("just-in-time compilers", "no Ruby has one; HEDDLE_RUBIES names Rubies") if compilers.empty?

      compilers.product(backends).map do |((version, ruby), option), backend|
        rake("differential programs, Ruby #{version}, #{backend}, #{option}", ruby, "spec",
             environment: { "RUBYOPT" => option, "SPEC" => "verification/differential", "HEDDLE_BACKEND" => backend,
                            "SPEC_OPTS" => "--seed #{seed}" },
             after: [compiled(version)], cpus: Parts::RSPEC_CPUS)
      end
    end

    # A Ruby without the compiler may accept the option, with a warning.
    def jit?(ruby, option) = answers?(ruby, option, "-e", "exit RubyVM::#{option[/\w+/].upcase}.enabled?")

    # @return [Array<Part>, nil] the part that fetches them, if it is needed; nil if they cannot be had
    def own_sources
      return [] if ENV["RUBY_SRC"]
      if Process.uid.zero? && File.exist?("/etc/apt/sources.list.d/heddle-forky.sources")
        return [Part.new(name: "the sources of Ruby", command: ["bash", "-c", FETCH_SOURCES])]
      end

      leave_out("Ruby's own tests", "set RUBY_SRC to the sources of Ruby #{SOURCES_RUBY}; they are downloaded " \
                                    "only by root on a Debian 12 that bin/setup has set up")
    end
  end
end
