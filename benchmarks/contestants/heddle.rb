# frozen_string_literal: true

require_relative "contestant"

# Heddle from this source tree, on one of its backends, and with one of its tickers where preemption is measured. A
# build without preemption is left out of those cases.
class HeddleContestant < Contestant
  class << self
    # The `lib` folder that Heddle is loaded from; `rake bench:compare` sets another tree's.
    attr_accessor :library
  end
  self.library = File.expand_path("../../lib", __dir__)

  def initialize(name, title, backend:, **options)
    super(name, title)
    @backend = backend
    @options = options
  end

  def heddle? = true

  def prepare
    $LOAD_PATH.unshift(HeddleContestant.library)
    require "heddle"
    preemption if @options.any?
    backend
  end

  def version = "Heddle #{Heddle::VERSION}"

  def scheduler = Heddle::Scheduler.new(backend: @backend, **@options)

  def compute
    return super unless @options.key?(:ticker)

    Heddle::YieldingFiber.schedule do
      sleep(0)
      yield
    end
  end

  private

  def backend
    asked = scheduler
    taken = asked.backend
    asked.close
    raise NotInstalled, "Heddle uses backend #{taken} instead of #{@backend}" unless taken == @backend
  rescue Heddle::BackendUnavailable => e
    raise NotInstalled, e.message
  end

  def preemption
    return if defined?(Heddle::YieldingFiber)

    raise NotInstalled, "this build of Heddle has no preemption"
  end
end
