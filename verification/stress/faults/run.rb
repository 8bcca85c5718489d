# frozen_string_literal: true

require "open3"
require "rbconfig"

class Faults
  # One run of the workload, in which one call fails with one error.
  class Run
    # Seconds for the workload, which takes half a second by itself, and for its report when it hangs.
    LIMIT = 10
    LAST_WORDS = 2
    WORKLOAD = File.expand_path("workload.rb", __dir__)

    GOOD = %i[right clean].freeze
    CRASH = /\[BUG\]|panicked/
    # What Ruby prints when it can't start.
    REFUSED = /failed to allocate|NoMemoryError|can't create Thread/

    def initialize(backend, fault)
      @backend = backend
      @fault = fault
    end

    def play
      command = [{ "HEDDLE_BACKEND" => @backend }, RbConfig.ruby, "-Ilib", WORKLOAD]
      Open3.popen3(*command, pgroup: true) do |input, output, errors, process|
        raise "the workload doesn't start: #{errors.read}" unless output.gets == "ready\n"

        readers = [output, errors].map { |io| Thread.new { io.read } }
        injecting(process.pid) { input.puts("go") }
        ended = process.join(LIMIT)
        stop(process) unless ended
        @output, @errors = readers.map(&:value)
        @status = process.value if ended
      ensure
        kill(process.pid)
      end
    end

    # `:right` and `:clean` are good. `:clean` means that an error was raised where one may be.
    def kind
      return :hung unless @status
      return :crashed if crashed?
      return :wrong if @output.include?("WRONG")
      return :unfinished if unfinished?

      @output.lines.all?(/ right$/) && @output.include?("program") ? :right : :clean
    end

    def to_s
      said = GOOD.include?(kind) ? @output.lines.grep_v(/ right$/) : [@status.inspect, "\n", @output, @errors]
      "#{@backend} #{@fault}: #{kind}\n#{said.join}".chomp.gsub("\n", "\n    ")
    end

    private

    def crashed? = @status.signaled? || @errors.match?(CRASH)

    # The workload prints its outcomes at its end, unless it couldn't start.
    def unfinished?
      return !@errors.match?(REFUSED) unless @output.include?("program")

      @output.include?("not over") && @output.include?("program right")
    end

    # strace ends with the traced process. It prints that it is attached, and then nothing more.
    def injecting(pid)
      errors, own = IO.pipe
      tracer = spawn("strace", "-f", "-p", pid.to_s, "-o", File::NULL, "-e", "inject=#{@fault}", err: own)
      Process.detach(tracer)
      own.close
      attached = errors.gets
      raise "strace says: #{attached}#{errors.read}" unless attached&.include?("attached")

      Thread.new { errors.read }
      yield
    end

    # On SIGQUIT the workload prints where it is.
    def stop(process)
      Process.kill(:QUIT, process.pid)
      process.join(LAST_WORDS) || kill(process.pid)
    end

    def kill(pid)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      # The process has ended by itself.
    end
  end
end
