# frozen_string_literal: true

require_relative "contestant"

# Async with io-event's epoll selector, which the variable IO_EVENT_SELECTOR chooses. The ratios are told to this one.
class AsyncContestant < Contestant
  SELECTOR = "EPoll"

  def prepare
    ENV["IO_EVENT_SELECTOR"] = SELECTOR
    require "async"
    taken = IO::Event::Selector.default.name
    raise NotInstalled, "io-event has no #{SELECTOR}, it takes #{taken}" unless taken.end_with?(SELECTOR)
  end

  def version = "Async #{Async::VERSION}, io-event #{IO::Event::VERSION}, #{SELECTOR}"

  def scheduler = Async::Scheduler.new
end
