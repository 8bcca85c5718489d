# frozen_string_literal: true

require_relative "../run/not_installed"

# A scheduler that is compared, or a substitute for one. `run` sets the scheduler for the block and returns when every
# fiber of the block has ended. Each subclass chooses a scheduler.
#
# Everything runs on the main thread, since the article's technique works only there.
class Contestant
  attr_reader :name, :title

  def initialize(name, title)
    @name = name
    @title = title
  end

  # Loads the libraries; raises LoadError or NotInstalled if one is missing.
  def prepare; end

  # Variables of the process that measures.
  def environment = {}

  # The versions of the libraries, for the report.
  def version = "Ruby #{RUBY_VERSION}"

  # Heddle's marks are shown beside Heddle's figures only.
  def heddle? = false

  # Whether only the CPU-bound work runs, without sleepers.
  def alone? = false

  # Whether the workload's `bare` method is measured instead.
  def bare? = false

  def run
    Fiber.set_scheduler(scheduler)
    yield
    Fiber.set_scheduler(nil)
  end

  # Starts a CPU-bound fiber. It first yields once, so that none computes before all of them have started.
  def compute
    Fiber.schedule do
      sleep(0)
      yield
    end
  end
end
