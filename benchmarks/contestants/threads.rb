# frozen_string_literal: true

require_relative "contestant"

# A thread for each fiber: `Fiber.schedule` starts one here, so that the user code stays the same. A thread that
# computes has Ruby's time slice of 100 ms, or one that the process gets at its start.
class ThreadsContestant < Contestant
  # Milliseconds; Ruby 3.3 has no such setting.
  VARIABLE = "RUBY_THREAD_TIMESLICE"
  SETTABLE = RUBY_VERSION >= "3.4"

  # @param milliseconds [Integer, nil] nil is Ruby's default
  def initialize(name, title, milliseconds: nil)
    super(name, title)
    @milliseconds = milliseconds
  end

  def environment = @milliseconds ? { VARIABLE => @milliseconds.to_s } : {}

  def prepare
    raise NotInstalled, "#{VARIABLE} needs Ruby 3.4 or newer" if @milliseconds && !SETTABLE

    threads = @threads = Queue.new
    Fiber.define_singleton_method(:schedule) { |&block| threads << Thread.new(&block) }
  end

  def run
    yield
    @threads.pop.join until @threads.empty?
  end

  def compute(&) = Fiber.schedule(&)
end
