# frozen_string_literal: true

require_relative "contestants/article"
require_relative "contestants/async"
require_relative "contestants/bare"
require_relative "contestants/heddle"
require_relative "contestants/plain"
require_relative "contestants/threads"

# Everybody who is measured, by name. The user code of a workload is the same for all of them: it knows
# `Fiber.set_scheduler` and `Fiber.schedule` only. What differs is in here: which scheduler is set, and how a fiber that
# computes is asked to be preempted where a contestant can do that at all.
#
# `THROUGHPUT` is measured by `rake bench`, `LATENCY` by `rake bench:latency`. Async is the one that ratios are told to.
module Contestants
  ALL = [
    HeddleContestant.new("heddle-io_uring", "Heddle, io_uring", backend: :io_uring),
    HeddleContestant.new("heddle-poll", "Heddle, poll", backend: :poll),
    AsyncContestant.new("async", "Async, epoll"),
    ThreadsContestant.new("threads", "threads"),
    BareContestant.new("bare", "bare limit"),
    PlainContestant.new("plain", "work alone"),
    ArticleContestant.new("article-50ms", "article, 50 ms", seconds: 0.05),
    ArticleContestant.new("article-10ms", "article, 10 ms", seconds: 0.01),
    *%i[io_uring poll].product(%i[signal timerfd]).map do |backend, ticker|
      HeddleContestant.new("heddle-#{backend}-#{ticker}", "Heddle, #{backend}, #{ticker}",
                           backend:, ticker:, preempt: :yielding)
    end,
    *%i[io_uring poll].product(%i[none yielding]).map do |backend, preempt|
      HeddleContestant.new("heddle-#{backend}-#{preempt}", "#{backend}, preempt: :#{preempt}",
                           backend:, preempt:)
    end
  ].freeze

  REFERENCE = "async"
  THROUGHPUT = %w[heddle-io_uring heddle-poll async threads bare].freeze
  PREEMPTING = %w[heddle-io_uring-signal heddle-io_uring-timerfd heddle-poll-signal heddle-poll-timerfd].freeze
  LATENCY = [*PREEMPTING, "article-10ms", "article-50ms", "async", "threads"].freeze
  PREEMPTING_NOBODY = %w[heddle-io_uring-none heddle-io_uring-yielding heddle-poll-none heddle-poll-yielding].freeze

  module_function

  def find(name)
    ALL.find { |contestant| contestant.name == name } or
      raise ArgumentError, "no contestant #{name.inspect}, there are: #{ALL.map(&:name).join(", ")}"
  end
end
