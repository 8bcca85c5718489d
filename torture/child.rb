# frozen_string_literal: true

# Runs the tests of one file of Ruby's test suite in this process:
#
#   ruby child.rb PLAN
#
# PLAN is a file with a marshalled Hash:
#   tree:     the Ruby source tree
#   file:     the test file, relative to the tree
#   events:   the file that gets a line per event
#   around:   :plain, :fiber, or :heddle
#   options:  for Heddle.run
#   company:  whether other fibers run beside each test
#   only, except: names of tests, as "Class#test"; nil for all and for none

plan = Marshal.load(File.binread(ARGV.shift))
ARGV.clear

# Else `fork` writes out what is in the buffer, and the fiber that forks waits for that.
$stdout.sync = true

require_relative "child_process"
require File.join(plan[:tree], "tool/test/init")
require "core_assertions"

if plan[:around] == :heddle
  $LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
  require "heddle"
end

# Tells the parent process what happens, a line per event.
class Events
  def initialize(path)
    @file = File.open(path, "ab").tap { |file| file.sync = true }
    @pid = Process.pid
  end

  # A test that forks has a child process that runs into the same code.
  def <<(event)
    @file.write("#{[Marshal.dump(event)].pack("m0")}\n") if Process.pid == @pid
    self
  end
end

# Fibers that sleep, compute, and do I/O beside a test.
class Company
  END_OF_TEST = "!"

  def initialize
    # Before the first test, as the suite looks for descriptors that a test leaves open.
    @reader, @writer = IO.pipe
  end

  def around
    over = false
    Fiber.schedule { sleep(0.001) until over }
    Fiber.schedule { compute until over }
    Fiber.schedule { nil until @reader.readpartial(64).include?(END_OF_TEST) }
    Fiber.schedule do
      talk until over
      @writer.write(END_OF_TEST)
    end
    yield
  ensure
    over = true
  end

  private

  def compute = 1000.times { |n| n * n }

  def talk
    @writer.write(".")
    sleep(0.0005)
  end
end

# What each test is run in.
module Arounds
  def self.for(plan)
    company = Company.new if plan[:company]
    case plan[:around]
    when :plain then ->(&test) { test.call }
    when :fiber then ->(&test) { Fiber.new(&test).resume }
    when :heddle
      lambda do |&test|
        Heddle.run(**plan[:options]) { company ? company.around(&test) : test.call }
      end
    end
  end
end

events = Events.new(plan[:events])
around = Arounds.for(plan)
only = plan[:only]
except = plan[:except] || []

# Runs each test in what the plan asks for, and tells about it.
reporting = Module.new do
  define_method(:run) do |runner|
    test = "#{self.class}##{__name__}"
    events << [:start, test]
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    around.call { super(runner) }
  rescue Exception => e # rubocop:disable Lint/RescueException -- so does Test::Unit, and this may be Heddle's own
    raise if Test::Unit::TestCase::PASSTHROUGH_EXCEPTIONS.any? { |type| type === e }

    events << [:outcome, test, :failed, "Outside of the test: #{e.full_message(highlight: false)}"]
    "E"
  ensure
    events << [:end, test, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started] if started
  end
end

# Chooses the tests, and records how they end.
recording = Module.new do
  define_method(:_run_anything) do |type|
    chosen = ->(test) { (only.nil? || only.include?(test)) && !except.include?(test) }
    options[:filter] = chosen
    tests = Test::Unit::TestCase.test_suites.flat_map do |suite|
      suite.test_methods.map { |name| "#{suite}##{name}" }.select(&chosen)
    end
    events << [:tests, tests]
    super(type)
    events << [:done]
  end

  define_method(:record) do |suite, name, assertions, time, error|
    outcome = case error
              when nil then :passed
              when Test::Unit::PendedError then :skipped
              else :failed
              end
    message = error&.full_message(highlight: false)
    events << [:outcome, "#{suite}##{name}", outcome, message&.b&.slice(0, 20_000)]
    super(suite, name, assertions, time, error)
  end
end

# What a test leaves behind: descriptors, threads, temporary files, environment variables.
leaks = Module.new do
  define_method(:puts) do |*lines|
    events << [:leak, *lines]
    super(*lines)
  end
end

Test::Unit::TestCase.prepend(reporting)
LeakChecker.prepend(leaks)
Torture::ChildProcess.answer

path = File.join(plan[:tree], plan[:file])
Test::Unit::AutoRunner::Runner.prepend(recording)
Test::Unit::AutoRunner.run(true, File.join(plan[:tree], "test"), ["--test-order=alpha", path])
# The events say which tests failed. The status says whether the process ended as it should.
exit(true)
