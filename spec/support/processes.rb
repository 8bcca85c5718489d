# frozen_string_literal: true

require "open3"
require "rbconfig"

# Runs parts of an example in processes of their own.
module Processes
  # Replaces a child's error that can't be marshalled, or must not be raised here, such as SystemExit.
  class ChildFailed < StandardError; end
  class TimedOut < StandardError; end

  LIB = File.expand_path("../../lib", __dir__)
  # Less than an example's own limit, so that this limit is the one that is reported.
  LIMIT = 20

  # Runs the block in a forked child and returns its value, or raises its error. The child runs nothing else: neither
  # at_exit blocks nor the rest of the example.
  def in_child(timeout: LIMIT)
    reader, writer = IO.pipe(binmode: true)
    pid = Process.fork do
      reader.close
      Child.answer(writer) { yield } # rubocop:disable Style/ExplicitBlockArgument -- must yield in the caller's frame
    end
    writer.close
    Child.outcome(pid, reader, timeout)
  ensure
    [reader, writer].each { |io| io&.close }
  end

  # Runs the source in a fresh Ruby, with this project's lib directory in its load path, and returns what it wrote to
  # stdout, what it wrote to stderr, and its status. A block, if there is one, gets the process id and its open stdin.
  def run_ruby(source, *arguments, stdin: "", env: {}, timeout: LIMIT, &interaction)
    command = [RbConfig.ruby, "-I", LIB, "-e", source, "--", *arguments]
    environment = Fresh.environment.merge(env)
    Open3.popen3(environment, *command, unsetenv_others: true, pgroup: true) do |input, output, errors, process|
      outputs = [output, errors].map { |io| Thread.new { io.read } }
      feeder = Thread.new { Fresh.feed(input, stdin) } unless interaction
      interaction&.call(process.pid, input)
      raise TimedOut, Fresh.overrun(process, outputs, timeout) unless process.join(timeout)

      feeder&.join
      [*outputs.map(&:value), process.value]
    end
  end

  # The parts of in_child.
  module Child
    NOT_TO_BE_RAISED_HERE = [SystemExit, SignalException, NoMemoryError].freeze

    module_function

    def answer(writer)
      succeeded = true
      answer = begin
        Marshal.dump([:value, yield])
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it is the parent's to know
        succeeded = false
        dump_error(e)
      end
      writer.write(answer)
      writer.close
    ensure
      exit!(succeeded ? 0 : 1)
    end

    def dump_error(error)
      raise TypeError if NOT_TO_BE_RAISED_HERE.any? { |type| error.is_a?(type) }

      Marshal.dump([:error, error])
    rescue TypeError
      Marshal.dump([:error, ChildFailed.new(error.full_message(highlight: false))])
    end

    def outcome(pid, reader, timeout)
      # In threads, because these waits must not depend on the scheduler under test.
      answer = Thread.new { reader.read }
      process = Process.detach(pid)
      unless process.join(timeout)
        Process.kill(:KILL, pid)
        process.join
        raise TimedOut, "the forked child was not done after #{timeout} s"
      end
      kind, result = load(answer.value, process.value)
      kind == :value ? result : raise(result)
    end

    def load(answer, status)
      raise ChildFailed, "the forked child ended without an answer: #{status.inspect}" if answer.empty?

      Marshal.load(answer) # rubocop:disable Security/MarshalLoad -- it comes from our own child
    end
  end

  # The parts of run_ruby.
  module Fresh
    # Seconds for a killed process's last output to arrive.
    LAST_WORDS = 1

    module_function

    # Bundler would make each start slower, and restrict which libraries can be loaded.
    def environment
      defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
    end

    def feed(input, data)
      input.write(data)
    rescue Errno::EPIPE
      # The process ended without reading all of its input.
    ensure
      input.close
    end

    def overrun(process, outputs, timeout)
      Process.kill(:KILL, -process.pid)
      written = outputs.map { |reader| reader.join(LAST_WORDS)&.value }
      "the fresh Ruby was not done after #{timeout} s\nstdout: #{written[0]}\nstderr: #{written[1]}"
    end
  end
end
