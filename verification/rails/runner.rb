# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"
require_relative "../../spec/support/database_server"

module Torture
  # Runs the specs of `heddle/rails`, and Rails' own tests, with a source tree of Rails. The tests of each component run
  # once on a plain thread, and once in preempted fibers. Prints what differs.
  class RailsTests
    FOLDER = __dir__
    ROOT = File.expand_path("../..", FOLDER)
    # What the source tree has libraries of.
    LIBRARIES = %w[
      actioncable actionmailer actionpack actionview activejob activemodel activerecord activestorage activesupport
      railties
    ].freeze
    COMPONENTS = %w[activesupport activerecord actionpack actioncable activejob].freeze
    SPECS = %w[rails adapter_part active_job puma/rails puma/rails_application]
            .map { |name| "spec/libraries/#{name}_spec.rb" }.freeze
    # The databases for Active Record's tests.
    DATABASES = %w[sqlite3 postgresql].freeze
    # What Active Record's tests expect on PostgreSQL.
    POSTGRESQL_DATABASES = %w[activerecord_unittest activerecord_unittest2].freeze
    # Active Job's tests of adapters that need a server. Rails' own task leaves them out, too.
    INTEGRATION = %r{\Atest/integration/}
    # Parts of tests' names that differ between two runs: times and addresses.
    VARYING = /0x\h+|\d+/
    # Active Job's adapter in each mode.
    ADAPTERS = { "thread" => "async", "fiber" => "heddle" }.freeze
    # For all tests. Some depend on those before, so both modes have one order.
    SETTINGS = { "PARALLEL_WORKERS" => "1", "SEED" => "1" }.freeze
    # Tests that differ by design, by the reason.
    KNOWN = YAML.safe_load_file(File.join(FOLDER, "known_differences.yml")).values.flatten.freeze
    # Seconds for the tests of one component.
    LIMIT = 3600

    # @param tree [String] a source tree of Rails
    # @param components [Array<String>] whose tests run
    # @param database [String] for Active Record's tests, one of {DATABASES}. The server of PostgreSQL is started for
    #   them, in a temporary directory.
    def initialize(tree, components: COMPONENTS, database: DATABASES.first)
      @tree = File.expand_path(tree)
      @components = components
      @database = database
      abort "DATABASE is #{database}; it must be one of #{DATABASES.join(", ")}" unless DATABASES.include?(database)
      abort "#{tree} has no #{components.first}/test" unless File.directory?(File.join(@tree, components.first, "test"))
    end

    # @return [Boolean] whether the specs pass, and no test differs in fibers that is not known to
    def pass?
      specs = specs_pass?
      @components.map { |component| same?(component) }.all? && specs
    end

    private

    def specs_pass?
      system(environment, RbConfig.ruby, "-S", "rspec", *SPECS, chdir: ROOT, unsetenv_others: true)
    end

    def same?(component)
      thread, fiber = %w[thread fiber].map { |mode| results(component, mode) }
      preemptions = fiber.delete("preemptions")&.first
      differing = (thread.keys | fiber.keys).reject { |test| thread[test]&.first == fiber[test]&.first }
      report(component, thread, fiber, preemptions, differing)
      (differing - KNOWN).empty? && !preemptions.nil?
    end

    def report(component, thread, fiber, preemptions, differing)
      passed = thread.values.count { |outcome,| outcome == "." }
      puts "#{component}: #{fiber.size} tests, #{passed} pass on a thread, #{differing.size} differ in fibers, " \
           "#{preemptions ? "#{preemptions} preemptions" : "which did not end"}"
      # Where the tests in fibers did not end, most are missing.
      differing.select { |test| preemptions || fiber.key?(test) }.each do |test|
        puts "  #{test}#{" (known)" if KNOWN.include?(test)}: #{outcome(thread[test])} on a thread, " \
             "#{outcome(fiber[test])} in fibers"
      end
    end

    def outcome(result) = result ? result.reject(&:empty?).join(" ") : "missing"

    # @return [Hash{String => Array<String>}] each test's outcome, and the first line of its failure
    def results(component, mode)
      folder = File.join(ROOT, "tmp/rails")
      FileUtils.mkdir_p(folder)
      file, log = %w[results log].map { |name| File.join(folder, "#{component}-#{mode}.#{name}") }
      File.write(file, "")
      command = ["timeout", "-s", "KILL", LIMIT.to_s, RbConfig.ruby, "-W0", "-Itest", File.join(FOLDER, "suite.rb")]
      with_database do |settings|
        system(environment.merge(SETTINGS, settings, "AJ_ADAPTER" => ADAPTERS.fetch(mode)), *command, mode, file,
               *tests(component), chdir: File.join(@tree, component), unsetenv_others: true, out: log,
                                  err: %i[child out])
      end
      File.readlines(file, chomp: true).to_h do |line|
        type, name, *rest = line.split("\t", -1)
        rest.empty? ? [type, [name]] : ["#{type}##{name}".gsub(VARYING, "N"), rest]
      end
    end

    # @yieldparam settings [Hash{String => String}] the environment variables that name the database
    def with_database
      return yield("ARCONN" => @database) unless @database == "postgresql"

      server = DatabaseServer.postgres || abort("DATABASE=postgresql needs PostgreSQL's server, which is missing")
      settings = { "ARCONN" => @database, "PGHOST" => server.folder, "PGUSER" => "postgres" }
      POSTGRESQL_DATABASES.each do |name|
        system(settings, "createdb", "--template=template0", "--encoding=UTF8", name, exception: true)
      end
      yield settings
    ensure
      server&.stop
    end

    def tests(component)
      other_databases = %r{/adapters/(?!#{@database})}
      files = Dir.chdir(File.join(@tree, component)) { Dir["test/**/*_test.rb"] }
      files.sort.grep_v(other_databases).grep_v(INTEGRATION)
    end

    def environment
      folders = LIBRARIES.map { |library| File.join(@tree, library, "lib") }
      paths = [File.join(FOLDER, "shims"), File.join(ROOT, "lib"), *folders].join(File::PATH_SEPARATOR)
      Bundler.unbundled_env.merge("RUBYLIB" => paths, "HEDDLE_REQUIRED" => "rails")
    end
  end
end
