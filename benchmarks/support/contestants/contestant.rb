# frozen_string_literal: true

require_relative "../not_installed"

# One of those who are compared: a scheduler, or what stands for one. `run` sets the scheduler for the block, and ends
# when every fiber of the block has ended. Its subclasses say which scheduler.
#
# Everything runs on the main thread, since the article's technique works only there.
class Contestant
  attr_reader :name, :title

  def initialize(name, title)
    @name = name
    @title = title
  end

  # Loads what is needed; raises LoadError or NotInstalled if it isn't there.
  def prepare; end

  # What was loaded, for the report.
  def version = "Ruby #{RUBY_VERSION}"

  # Heddle's marks are told beside Heddle's figures only.
  def heddle? = false

  # Whether nothing runs beside what is measured.
  def alone? = false

  # Bare limits have code of their own in the workload.
  def bare? = false

  def run
    Fiber.set_scheduler(scheduler)
    yield
    Fiber.set_scheduler(nil)
  end

  # A fiber that computes. It first waits once, so that none computes before all of them have begun.
  def compute
    Fiber.schedule do
      sleep(0)
      yield
    end
  end
end
