# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"

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
    # Active Record's tests of other databases.
    OTHER_DATABASES = %r{/adapters/(?!sqlite3)}
    # Parts of tests' names that differ between two runs: times and addresses.
    VARYING = /0x\h+|\d+/
    # Active Job's adapter in each mode.
    ADAPTERS = { "thread" => "async", "fiber" => "heddle" }.freeze
    # For all tests. Some depend on those before, so both modes have one order.
    SETTINGS = { "ARCONN" => "sqlite3", "PARALLEL_WORKERS" => "1", "SEED" => "1" }.freeze
    # Tests that differ by design, by the reason.
    KNOWN = YAML.safe_load_file(File.join(FOLDER, "known_differences.yml")).values.flatten.freeze
    # Seconds for the tests of one component.
    LIMIT = 3600

    # @param tree [String] a source tree of Rails
    # @param components [Array<String>] whose tests run
    def initialize(tree, components: COMPONENTS)
      @tree = File.expand_path(tree)
      @components = components
      abort "#{tree} has no #{components.first}/test" unless File.directory?(File.join(@tree, components.first, "test"))
    end

    # @return [Boolean] whether the specs pass, and no test differs in fibers that is not known to
    def pass?
      specs = specs_pass?
      @components.map { |component| same?(component) }.all? && specs
    end

    private

    def specs_pass?
      specs = %w[spec/libraries/rails_spec.rb spec/libraries/active_job_spec.rb]
      system(environment, RbConfig.ruby, "-S", "rspec", *specs, chdir: ROOT, unsetenv_others: true)
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
      system(environment.merge(SETTINGS, "AJ_ADAPTER" => ADAPTERS.fetch(mode)), *command, mode, file,
             *tests(component), chdir: File.join(@tree, component), unsetenv_others: true, out: log,
                                err: %i[child out])
      File.readlines(file, chomp: true).to_h do |line|
        type, name, *rest = line.split("\t", -1)
        rest.empty? ? [type, [name]] : ["#{type}##{name}".gsub(VARYING, "N"), rest]
      end
    end

    def tests(component)
      Dir.chdir(File.join(@tree, component)) { Dir["test/**/*_test.rb"] }.sort.grep_v(OTHER_DATABASES)
    end

    def environment
      folders = LIBRARIES.map { |library| File.join(@tree, library, "lib") }
      paths = [File.join(FOLDER, "shims"), File.join(ROOT, "lib"), *folders].join(File::PATH_SEPARATOR)
      Bundler.unbundled_env.merge("RUBYLIB" => paths, "HEDDLE_REQUIRED" => "rails")
    end
  end
end
