# frozen_string_literal: true

require_relative "contestant"

# Async with io-event's epoll selector, which the variable IO_EVENT_SELECTOR chooses. Ratios are relative to it.
class AsyncContestant < Contestant
  SELECTOR = "EPoll"

  def prepare
    ENV["IO_EVENT_SELECTOR"] = SELECTOR
    require "async"
    taken = IO::Event::Selector.default.name
    raise NotInstalled, "io-event uses #{taken} instead of #{SELECTOR}" unless taken.end_with?(SELECTOR)
  end

  def version = "Async #{Async::VERSION}, io-event #{IO::Event::VERSION}, #{SELECTOR}"

  def scheduler = Async::Scheduler.new
end
