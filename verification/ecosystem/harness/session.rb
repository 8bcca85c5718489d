# frozen_string_literal: true

require "rbconfig"
require "timeout"
require_relative "library"
require_relative "tasks"
require_relative "checks"
require_relative "servers"
require_relative "verdict"

module Ecosystem
  # Runs the checks of one library, as every contestant, each in a process of its own with a server of its own.
  class Session
    ROOT = File.expand_path("../../..", __dir__)
    CHILD = File.join(__dir__, "child.rb")
    # Seconds without a result after which a process counts as hanging. A check whose calls all hang ends by itself:
    # `dies` after four times HANGS.
    LIMIT = 5 * Checks::HANGS
    # How often times are measured until they are good: the machine may have been busy.
    ATTEMPTS = 3

    Result = Struct.new(:library, :version, :verdicts, :observed)

    # @param times [Boolean] whether times are judged
    def initialize(library, file, servers, contestants, times:)
      @library = library
      @file = file
      @servers = servers
      @contestants = contestants
      @times = times
    end

    # @return [Result] the verdicts by column and contestant
    def run
      threads = measure("threads", @library.checks)
      observed = { "threads" => threads }
      verdicts = Hash.new { |hash, column| hash[column] = {} }
      @contestants.each do |contestant|
        columns(contestant, threads, observed).each { |column, verdict| verdicts[column][contestant] = verdict }
      end
      Result.new(@library, @version, verdicts, observed)
    end

    private

    # Where times are judged, checks that are not good are repeated, except those that are known to be weak.
    def columns(contestant, threads, observed)
      best = {}
      checks = @library.checks
      observed[contestant] = {}
      (@times ? ATTEMPTS : 1).times do
        seen = measure(contestant, checks)
        observed[contestant].update(seen)
        judge(seen, threads, best)
        bad = best.select { |_, verdict| verdict.kind == :bad }.keys - @library.weak
        checks = Verdict::CHECKS.values_at(*bad).uniq
        break if checks.empty?
      end
      best
    end

    def judge(seen, threads, best)
      Verdict::CHECKS.each do |column, check|
        next if !seen.key?(check) || (best.key?(column) && best[column].kind != :bad)

        verdict = Verdict.new(column, seen[check], threads.fetch(check), times: @times,
                                                                         excused: @library.weak.include?(column))
        best[column] = verdict if @times || !verdict.about_time?
      end
    end

    # A check that hangs ends its process; the checks after it get another one.
    def measure(contestant, checks)
      observed = {}
      until (rest = checks - observed.keys).empty?
        with_server { |server| child(contestant, rest, server, observed) }
        observed[rest.first] ||= @failure
      end
      observed
    end

    def with_server
      return yield nil unless @library.server

      server = @servers.start(@library.server)
      begin
        yield server
      ensure
        server.stop
      end
    end

    def child(contestant, checks, server, observed)
      results, input = IO.pipe
      errors = Tempfile.new("heddle-ecosystem")
      pid = spawn(environment(server), RbConfig.ruby, "-W0", "-I#{ROOT}/lib", CHILD, contestant, @file, @library.title,
                  *checks, 3 => input, out: File::NULL, err: errors.path, pgroup: true, chdir: Dir.tmpdir)
      input.close
      read(results) { |name, value| name == "version" ? @version = value : observed[name] = value }
      @failure = { "error" => "crash", "message" => File.read(errors.path)[-800..] || File.read(errors.path) }
    rescue Timeout::Error
      @failure = "hangs"
    ensure
      finish(pid)
      errors&.close!
    end

    def read(results)
      # Not the IO's timeout, which begins anew with each signal, such as of a server that ends.
      while (line = Timeout.timeout(LIMIT) { results.gets })
        yield JSON.parse(line)
      end
    end

    def finish(pid)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      # It has ended.
    ensure
      Process.wait(pid)
    end

    def environment(server)
      { "RESULTS" => "3", "HEDDLE_BACKEND" => nil, "ECOSYSTEM_SERVER" => JSON.generate(server.to_a) }
    end
  end
end
