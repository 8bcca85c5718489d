# frozen_string_literal: true

require "rbconfig"

# Runs parts of an example in processes of their own, which have a time limit.
module Processes
  # Replaces a child's error that can't be marshalled, or must not be raised here, such as SystemExit.
  class ChildFailed < StandardError; end
  class TimedOut < StandardError; end

  LIB = File.expand_path("../../lib", __dir__)
  # Less than an example's own limit, so that this limit is the one that is reported.
  LIMIT = 50

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

  # Starts a command, and yields its stdin, its stdout, its stderr and its process. Kills the command and its children
  # at the end of the block. The options are those of `spawn`.
  def with_command(*command, env: {}, **)
    pipes = Array.new(3) { IO.pipe }
    (stdin, input), (output, stdout), (errors, stderr) = pipes
    options = { unsetenv_others: true, pgroup: true, in: stdin, out: stdout, err: stderr }
    process = Process.detach(spawn(Fresh.environment.merge(env), *command, **options, **))
    [stdin, stdout, stderr].each(&:close)
    yield input, output, errors, process
  ensure
    Fresh.kill_group(process) if process
    pipes.flatten.each(&:close)
  end

  # Runs a command, and returns what it wrote to stdout, what it wrote to stderr, and its status. A block, if there is
  # one, gets the process id and its open stdin.
  def run_command(*command, stdin: "", timeout: LIMIT, **, &interaction)
    with_command(*command, **) do |input, output, errors, process|
      outputs = [output, errors].map { |io| Fresh.reading(io) }
      feeder = Thread.new { Fresh.feed(input, stdin) } unless interaction
      interaction&.call(process.pid, input)
      raise TimedOut, Fresh.overrun(process, outputs, timeout) unless process.join(timeout)

      feeder&.join
      [*outputs.map(&:value), process.value]
    end
  end

  # Runs the source as run_command does in a fresh Ruby, with this project's lib directory in its load path.
  def run_ruby(source, *arguments, **, &)
    # Ruby 4.0.1 crashes where `...` follows a splat.
    command = [*Fresh.ruby(source), "--", *arguments]
    run_command(*command, **, &)
  end

  # Runs the program in a fresh Ruby, after the preamble, and returns what it prints. Fails the example if the program
  # writes to stderr or fails. A block, if there is one, gets the status first.
  #
  # A file whose examples all have the same preamble or environment overrides these by `let`.
  def printed(program, preamble: self.preamble, environment: self.environment)
    output, errors, status = run_ruby(preamble + program, env: environment)
    yield status if block_given?
    expect([errors, status.success?]).to eq ["", true]
    output
  end

  def preamble = ""

  def environment = {}

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

  # The parts of with_command and what is built on it.
  module Fresh
    # Seconds for a killed process's last output to arrive.
    LAST_WORDS = 1

    module_function

    # The command that runs the source.
    def ruby(source) = [RbConfig.ruby, "-I", LIB, "-r", AMoment::PATH, "-e", source]

    # Bundler would make each start slower, and restrict which libraries can be loaded.
    def environment
      defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
    end

    # Reads until the end. The reading ends early if the interaction leaves the block, as by `skip`.
    def reading(io)
      Thread.new do
        Thread.current.report_on_exception = false
        io.read
      end
    end

    def feed(input, data)
      input.write(data)
    rescue Errno::EPIPE
      # The process ended without reading all of its input.
    ensure
      input.close
    end

    # The group outlives its first process where a child of the process has been left behind.
    def kill_group(process)
      Process.kill(:KILL, -process.pid)
    rescue Errno::ESRCH
      # No process of the group is left.
    ensure
      process.join
    end

    def overrun(process, outputs, timeout)
      kill_group(process)
      written = outputs.map { |reader| reader.join(LAST_WORDS)&.value }
      "the fresh Ruby was not done after #{timeout} s\nstdout: #{written[0]}\nstderr: #{written[1]}"
    end
  end
end
