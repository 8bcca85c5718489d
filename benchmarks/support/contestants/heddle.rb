# frozen_string_literal: true

require_relative "contestant"

# Heddle from this very source tree, on one of its backends, and with one of its tickers where preemption is measured.
# A build without preemption is told from one with it, and is then left out of those rows by name: the options that
# nobody asked for are not passed on.
class HeddleContestant < Contestant
  LIBRARY = File.expand_path("../../../lib", __dir__)

  def initialize(name, title, backend:, **options)
    super(name, title)
    @backend = backend
    @options = options
  end

  def heddle? = true

  def prepare
    $LOAD_PATH.unshift(LIBRARY)
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
    raise NotInstalled, "asked for #{@backend}, got #{taken}" unless taken == @backend
  rescue Heddle::BackendUnavailable => e
    raise NotInstalled, e.message
  end

  def preemption
    return if defined?(Heddle::YieldingFiber)

    raise NotInstalled, "this build of Heddle has no preemption"
  end
end
