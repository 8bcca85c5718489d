# frozen_string_literal: true

require_relative "contestants/article"
require_relative "contestants/async"
require_relative "contestants/async_on_heddle"
require_relative "contestants/bare"
require_relative "contestants/carbon_fiber"
require_relative "contestants/heddle"
require_relative "contestants/itsi"
require_relative "contestants/libev"
require_relative "contestants/plain"
require_relative "contestants/threads"
require_relative "contestants/uring_machine"

# All contestants, by name. The user code of a workload is the same for all of them: it uses `Fiber.set_scheduler` and
# `Fiber.schedule` only. A contestant chooses the scheduler, and how a CPU-bound fiber is started: preemptibly, where
# the scheduler can preempt.
#
# `rake bench` measures `THROUGHPUT`, `rake bench:latency` measures `LATENCY`. Ratios are relative to Async.
module Contestants
  ALL = [
    HeddleContestant.new("heddle-io_uring", "Heddle, io_uring", backend: :io_uring),
    HeddleContestant.new("heddle-poll", "Heddle, poll", backend: :poll),
    AsyncContestant.new("async", "Async, epoll"),
    AsyncContestant.new("async-uring", "Async, io_uring", "URing"),
    AsyncOnHeddleContestant.new("tasks-io_uring", "Async on Heddle, io_uring", :io_uring),
    AsyncOnHeddleContestant.new("tasks-poll", "Async on Heddle, poll", :poll),
    UringMachineContestant.new("uringmachine", "UringMachine", size: UringMachineContestant::SUBMISSION_ENTRIES),
    UringMachineContestant.new("uringmachine-default", "UringMachine, default ring"),
    ItsiContestant.new("itsi", "itsi-scheduler"),
    LibevContestant.new("libev", "libev_scheduler"),
    CarbonFiberContestant.new("carbon_fiber", "carbon_fiber"),
    ThreadsContestant.new("threads", "threads"),
    ThreadsContestant.new("threads-10ms", "threads, 10 ms slice", milliseconds: 10),
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
  THROUGHPUT = %w[
    heddle-io_uring heddle-poll async async-uring tasks-io_uring tasks-poll uringmachine itsi libev carbon_fiber threads
    bare
  ].freeze
  PREEMPTING = %w[heddle-io_uring-signal heddle-io_uring-timerfd heddle-poll-signal heddle-poll-timerfd].freeze
  THREADS = %w[threads threads-10ms].freeze
  LATENCY = [*PREEMPTING, "article-10ms", "article-50ms", "async", *THREADS].freeze
  # Without a yielding fiber, these should cost the same.
  UNUSED_PREEMPTION = %w[heddle-io_uring-none heddle-io_uring-yielding heddle-poll-none heddle-poll-yielding].freeze
  HEDDLE = %w[heddle-io_uring heddle-poll].freeze

  module_function

  def find(name)
    ALL.find { |contestant| contestant.name == name } or
      raise ArgumentError, "no contestant #{name.inspect}; the contestants are #{ALL.map(&:name).join(", ")}"
  end
end
