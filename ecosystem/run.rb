# frozen_string_literal: true

require "json"
require "tempfile"
require "tmpdir"
require_relative "harness/session"
require_relative "harness/report"

module Ecosystem
  # Runs the libraries, and prints or writes the table.
  class Run
    REPORT = File.join(Session::ROOT, "docs/compatibility.md")
    OBSERVED = File.join(Session::ROOT, "tmp/ecosystem.json")
    # How many libraries are measured at a time; their processes mostly wait.
    JOBS = 3

    # @param chosen [Array<String>] titles of libraries; empty for all
    # @param contestants [Array<String>] see {Tasks::CONTESTANTS}
    # @param writes [Boolean] whether to write the page, if all libraries are run, and not print the table
    def initialize(chosen: [], contestants: Tasks::CONTESTANTS - ["threads"], writes: true)
      @chosen = chosen
      @writes = writes && chosen.empty?
      @contestants = contestants
      @servers = Servers.new
      @skipped = {}
    end

    # @return [Boolean] whether no library is worse in fibers than on threads, except where its file expects it
    def run
      results = in_parallel(jobs) { |job| session(*job) }.compact.sort_by { |result| result.library.title.downcase }
      report = Report.new(results, @skipped, @contestants)
      keep(results)
      puts @skipped.map { |title, reason| "left out: #{title}: #{reason}" }, report.faults
      @writes ? File.write(REPORT, report.page) : puts(report.table)
      report.unexpected.empty?
    ensure
      @servers.close
    end

    private

    def jobs
      known = Dir[File.expand_path("libraries/*.rb", __dir__)].flat_map { |file| described_in(file) }
      known.select { |library, _| @chosen.empty? || @chosen.any? { |name| library.title.start_with?(name) } }
    end

    def keep(results)
      FileUtils.mkdir_p(File.dirname(OBSERVED))
      File.write(OBSERVED, JSON.pretty_generate(results.to_h { |result| [result.library.title, result.observed] }))
    end

    def described_in(file)
      known = Ecosystem.libraries.keys
      require file
      (Ecosystem.libraries.keys - known).map { |title| [Ecosystem.libraries[title], file] }
    end

    def session(library, file)
      missing = missing(library)
      return (@skipped[library.title] = missing) && nil if missing

      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Session.new(library, file, @servers, @contestants).run.tap do
        puts "#{(Process.clock_gettime(Process::CLOCK_MONOTONIC) - started).round(1)} s  #{library.title}"
      end
    rescue StandardError => e
      @skipped[library.title] = "#{e.class}: #{e.message}"
      nil
    end

    def missing(library)
      return "the server (#{library.server}) is not installed" if library.server && !@servers.available?(library.server)

      names = Array(library.requires)
      found = system(RbConfig.ruby, "-W0", *names.map { |name| "-r#{name}" }, "-e", "", %i[out err] => File::NULL)
      "not installed for this Ruby (#{names.join(", ")})" unless found
    end

    def in_parallel(jobs, &block)
      queue = Queue.new
      jobs.each { |job| queue.push(job) }
      queue.close
      Array.new(JOBS) do
        Thread.new do
          done = []
          while (job = queue.pop)
            done << block.call(job)
          end
          done
        end
      end.flat_map(&:value)
    end
  end
end
