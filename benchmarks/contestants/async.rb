# frozen_string_literal: true

require_relative "contestant"

# Async with one of io-event's selectors, which the variable IO_EVENT_SELECTOR chooses. Ratios are relative to EPoll.
class AsyncContestant < Contestant
  def initialize(name, title, selector = "EPoll")
    super(name, title)
    @selector = selector
  end

  def prepare
    ENV["IO_EVENT_SELECTOR"] = @selector
    require "async"
    known = IO::Event::Selector.const_defined?(@selector)
    raise NotInstalled, "this build of io-event has no #{@selector}" unless known

    taken = IO::Event::Selector.default.name
    raise NotInstalled, "io-event uses #{taken} instead of #{@selector}" unless taken.end_with?(@selector)
  end

  def version = "Async #{Async::VERSION}, io-event #{IO::Event::VERSION}, #{@selector}"

  def scheduler = Async::Scheduler.new
end
