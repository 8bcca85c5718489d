# frozen_string_literal: true

require "timeout"

# What `require "heddle"` loads where the extension is missing; see {Heddle.supported?}.
module Heddle # :nodoc:
  # What a program may rescue.
  class BackendUnavailable < Error; end

  # Raised by nothing here.
  class TimeoutError < Timeout::Error; end

  # Those that need a scheduler on Linux, too, but in {run} and {spin}.
  NEEDING = %i[
    after await await_all cancel_after dump dump_on every fibers map move_on_after on_stall race run snooze spin state
    stop trace trap waiting_for
  ].freeze
  private_constant :NEEDING

  class << self
    NEEDING.each do |name|
      define_method(name) { |*, **| raise Extension.error("Heddle.#{name}") }
    end

    # There is no preemption.
    def without_preemption = yield

    # There is no name to give.
    def annotate(*) = yield

    # Nothing cancels.
    def shield(*) = yield

    # Nothing is carried.
    def carry_context = nil

    # Semaphores, pools and all else.
    def const_missing(name)
      raise Extension.error("Heddle::#{name}")
    end
  end

  # Raises {Unsupported}.
  class Scheduler
    # @raise [Unsupported]
    def initialize(...) = raise(Extension.error("Heddle::Scheduler.new"))
  end

  # Raises {Unsupported}.
  class YieldingFiber < Fiber
    # @raise [Unsupported]
    def self.schedule(...) = raise(Extension.error("YieldingFiber.schedule"))

    # @raise [Unsupported]
    def initialize(...) = raise(Extension.error("YieldingFiber.new")) # rubocop:disable Lint/MissingSuper -- it raises
  end
end

YieldingFiber = Heddle::YieldingFiber
