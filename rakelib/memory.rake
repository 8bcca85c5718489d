# frozen_string_literal: true

require "fileutils"
require "open3"

# What reads or frees memory that Heddle or Ruby has freed. `rake asan` sees less: it does not know Ruby's own reads.
module MemoryChecks
  extend Rake::DSL

  PERTURB = { "GLIBC_TUNABLES" => "glibc.malloc.perturb=255" }.freeze
  SPECS = %w[spec/scheduler/memory spec/scheduler/fork spec/slow/compaction_spec.rb].freeze
  WORKLOAD = "verification/memory/workload.rb"
  REPORTS = "tmp/memory"
  # Seconds for the workload with one backend. It takes ten to twenty; only a hang takes longer than this.
  LIMIT = 600
  # Without the reports of values that were never set: Ruby's collector reads all of a stack.
  OPTIONS = %w[--undef-value-errors=no --error-limit=no --num-callers=40 --xml=yes].freeze
  FRAME = %r{<obj>[^<]*/#{Regexp.escape(Build::LIBRARY)}</obj>}
  # On the heap. Errors on stacks are no errors: valgrind takes some fibers' stacks for one.
  BLOCK = /block of size|<kind>\w*Free/

  module_function

  def perturb
    Rake::Task["compile"].invoke
    Specs.backends.each do |backend|
      sh({ **PERTURB, "HEDDLE_BACKEND" => backend }, RbConfig.ruby, Gem.bin_path("rspec-core", "rspec"), *SPECS)
    end
  end

  def valgrind
    return puts("memory:valgrind is skipped: valgrind is not installed (apt-get install valgrind)") unless valgrind?

    Rake::Task["compile"].invoke
    FileUtils.mkdir_p(REPORTS)
    errors = Specs.backends.flat_map { |backend| errors_of(backend) }
    puts errors
    abort "valgrind reports #{errors.size} errors with a frame in #{Build::LIBRARY}" if errors.any?
    puts "valgrind reports no error with a frame in #{Build::LIBRARY}"
  end

  def valgrind?
    Open3.capture2e("valgrind", "--version").last.success?
  rescue Errno::ENOENT
    false
  end

  # The elements `error` of valgrind's report that name the extension, in the stack of the access, or in that of the
  # block's allocation or release.
  def errors_of(backend)
    file = "#{REPORTS}/valgrind-#{RUBY_VERSION}-#{backend}.xml"
    command = ["timeout", "--kill-after=5", LIMIT.to_s, "valgrind", *OPTIONS, "--xml-file=#{file}", RbConfig.ruby]
    output, errors, status = Open3.capture3({ "HEDDLE_BACKEND" => backend }, *command, "-Ilib", WORKLOAD)
    abort "#{WORKLOAD} failed under valgrind (#{status}): #{errors}" unless status.success? && output == "done\n"
    File.read(file).scan(%r{<error>.*?</error>}m).grep(FRAME).grep(BLOCK)
  end
end

namespace :memory do
  desc "Run the specs of memory and fork while glibc overwrites what is freed"
  task(:perturb) { MemoryChecks.perturb }

  desc "Run a small program under valgrind, and count the errors that involve the extension"
  task(:valgrind) { MemoryChecks.valgrind }
end
