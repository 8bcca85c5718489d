# frozen_string_literal: true

require "json"
require "tempfile"
require "tmpdir"
require_relative "harness/session"
require_relative "harness/report"

module Ecosystem
  # Runs the libraries, and prints or writes the table.
  class Run
    GUIDE = File.join(Session::ROOT, "docs/libraries.md")
    OBSERVED = File.join(Session::ROOT, "tmp/ecosystem.json")
    # How many libraries are measured at a time; their processes mostly wait.
    JOBS = 3

    # @param chosen [Array<String>] titles of libraries; empty for all
    # @param contestants [Array<String>] see {Tasks::CONTESTANTS}
    # @param writes [Boolean] whether to judge times, too, and to write the page if all libraries are run; or else to
    #   print the table
    def initialize(chosen: [], contestants: Tasks::CONTESTANTS - ["threads"], writes: true)
      @chosen = chosen
      @times = writes
      @writes = writes && chosen.empty?
      @contestants = contestants
      @servers = Servers.new
      @skipped = {}
      @crashed = {}
    end

    # @return [Boolean] whether all libraries that are installed, and whose servers start, were measured, and none is
    #   worse in fibers than on threads, except where its file expects it
    def run
      results = in_parallel(jobs) { |job| session(*job) }.compact.sort_by { |result| result.library.title.downcase }
      report = Report.new(results, @skipped, @contestants)
      keep(results)
      puts left_out, report.faults
      write_or_print(report)
      report.unexpected.empty? && @crashed.empty?
    ensure
      @servers.close
    end

    private

    def jobs
      known = Dir[File.expand_path("libraries/*.rb", __dir__)].flat_map { |file| described_in(file) }
      known.select { |library, _| @chosen.empty? || @chosen.any? { |name| library.title.start_with?(name) } }
    end

    def write_or_print(report)
      @writes && @crashed.empty? ? report.write_into(GUIDE) : puts(report.table)
    end

    def left_out
      @skipped.map { |title, reason| "left out: #{title}: #{reason}" } +
        @crashed.map { |title, error| "not measured: #{title}: #{error.full_message(highlight: false)}" }
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
      Session.new(library, file, @servers, @contestants, times: @times).run.tap do
        puts "#{(Process.clock_gettime(Process::CLOCK_MONOTONIC) - started).round(1)} s  #{library.title}"
      end
    rescue Servers::NotStarted => e
      puts "left out: #{library.title}: #{e.message}"
      @skipped[library.title] = "the server (#{library.server}) did not start"
      nil
    rescue StandardError => e
      @crashed[library.title] = e
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
