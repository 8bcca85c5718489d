# frozen_string_literal: true

require_relative "contestant"

# A thread for each fiber: `Fiber.schedule` starts one here, so that the user code stays the same.
class ThreadsContestant < Contestant
  def prepare
    threads = @threads = Queue.new
    Fiber.define_singleton_method(:schedule) { |&block| threads << Thread.new(&block) }
  end

  def run
    yield
    @threads.pop.join until @threads.empty?
  end

  def compute(&) = Fiber.schedule(&)
end
