# frozen_string_literal: true

require "stringio"

# Gives every example a time limit. The typical fault of a scheduler is a fiber that is never woken.
class Watchdog
  # Not a StandardError: the code under test may rescue those.
  class TimeLimitExceeded < Exception; end # rubocop:disable Lint/InheritException

  # Seconds for an example that has no limit of its own. The longest take five on a machine that is not busy.
  LIMIT = 60
  # Seconds for an example to end after the time limit was raised in it.
  GRACE = 5

  def self.guard(limit, name, &)
    new(limit, name).guard(&)
  end

  def initialize(limit, name)
    @limit = limit
    @name = name
    @target = Thread.current
    @finished = Queue.new
  end

  def guard
    thread = Thread.new { watch }
    thread.name = "watchdog"
    # Until it waits, a virtual clock takes it for a thread that may wake a fiber, and waits for it.
    Thread.pass until thread.stop?
    yield
  ensure
    @finished.push(true)
    thread.join
  end

  private

  def watch
    before = computed
    return if finished_within?(@limit)

    @target.raise(TimeLimitExceeded, "#{@name} is not done after #{@limit} s\n#{state(computed - before)}")
    return if finished_within?(GRACE)

    give_up
  end

  # By a second at a time: the machine may be stopped as a whole, and its clock goes on meanwhile.
  def finished_within?(seconds)
    whole, rest = seconds.divmod(1)
    [*[1] * whole, rest].any? { |second| @finished.pop(timeout: second) }
  end

  # @return [Float] seconds of CPU time
  def computed = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

  # What an example that seldom hangs was doing.
  def state(computed)
    fibers = StringIO.new
    Heddle.dump(fibers)
    "The process has computed for #{computed.round(1)} s meanwhile.\n#{fibers.string}"
  rescue StandardError => e
    "Heddle.dump: #{e.full_message}"
  end

  # After an example that can't be interrupted RSpec can't continue.
  def give_up
    Report.finish("#{@name} still hangs #{GRACE} s after it was told to stop. RSpec ends here.")
  end

  # Reports where every thread and fiber is.
  module Report
    STDERR_FD = 2
    RSPEC = %r{/rspec-core-}

    module_function

    # rakelib/spec.rake asks by this signal when RSpec as a whole takes too long.
    def finish_on(signal)
      trap(signal) { finish("RSpec got SIG#{signal} and ends here.") }
    end

    # Writes to the descriptor, as the example may have replaced $stderr.
    def finish(headline)
      IO.for_fd(STDERR_FD, autoclose: false).syswrite(text(headline))
      exit!(1)
    end

    def text(headline)
      [
        headline,
        *RSpec.configuration.reporter.failed_examples.map { |example| failure(example) },
        *Thread.list.map { |thread| trace(thread) },
        *ObjectSpace.each_object(Fiber).map { |fiber| trace(fiber) }
      ].join("\n\n") << "\n"
    end

    # RSpec reports failures at its end, which it doesn't reach.
    def failure(example)
      "failed before: #{example.location_rerun_argument} #{example.exception&.message}"
    end

    def trace(subject)
      [subject.inspect, *subject.backtrace&.grep_v(RSPEC)].join("\n    ")
    rescue StandardError => e
      "#{subject.class}: #{e.message}"
    end
  end
end
