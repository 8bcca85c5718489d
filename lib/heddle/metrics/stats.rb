# frozen_string_literal: true

require_relative "histogram"

module Heddle
  # What a scheduler counts. {Scheduler#stats} returns it; `heddle/metrics/prometheus` and
  # `heddle/metrics/opentelemetry` hand it to those libraries.
  module Metrics
    # The garbage collector's numbers when Heddle was loaded, or when this process was forked.
    @gc_before = [GC.count, GC.total_time].freeze

    class << self
      # Called in a forked child.
      #
      # @api private
      def after_fork
        @gc_before = [GC.count, GC.total_time].freeze
      end

      # @api private
      # @return [Hash{Symbol => Integer, Float}]
      def gc
        count, nanoseconds = @gc_before
        { count: GC.count - count, duration: (GC.total_time - nanoseconds) / 1e9 }
      end

      # @api private
      # @param numbers [Hash] what the extension has counted
      # @return [Hash] see {Scheduler#stats}
      def complete(numbers)
        numbers => { elapsed:, kernel: { park_duration: }, operations:, run_queue: }
        busy = [elapsed - park_duration, 0.0].max
        numbers[:busy_duration] = busy
        numbers[:busy_ratio] = elapsed.positive? ? busy / elapsed : 0.0
        batches = operations[:batches_count]
        operations[:mean_batch_size] = batches.positive? ? operations[:completed_count].fdiv(batches) : 0.0
        %i[scheduled_duration slice_duration].each do |name|
          run_queue[name] = Histogram.of(*run_queue[name]) if run_queue[name]
        end
        Ractor.make_shareable(numbers.merge(gc:))
      end
    end
  end

  class Scheduler # :nodoc:
    # What the scheduler has done since it was made, and what it does now. Any thread may call it, also when the
    # scheduler is closed. In a forked child the counts start at zero.
    #
    # The keys stay as they are in later minor versions; keys may be added. Names are those of tokio-metrics where it
    # has the same measure. All durations are in seconds, and names that end in `_count` never decrease.
    # `docs/observability.md` says what each number means, and what it costs.
    #
    # @return [Hash{Symbol => Float, Hash}] frozen:
    #
    #   - `elapsed`, `busy_duration`, `busy_ratio`: how long the scheduler was open, how long its thread did not wait in
    #     the kernel, and the quotient
    #   - `fibers`: `running`, `runnable`, `waiting`, `waiting_for` (by kind), `spawned_count`, `ended_count`,
    #     `failed_count`
    #   - `run_queue`: `depth`, `switches_count`, `budget_forced_yield_count`, `preemptions_count`, and with `stats:
    #     :detailed` the {Metrics::Histogram}s `scheduled_duration` (from wake-up to run) and `slice_duration`, which
    #     are nil otherwise
    #   - `kernel`: `polls_count`, `park_count`, `busy_poll_count`, `park_duration`
    #   - `operations`: `pending`, `tried_count`, `ready_count`, `read_count`, `write_count`, `receive_count`,
    #     `send_count`, `job_count`, `completed_count`, `batches_count`, `max_batch_size`, `mean_batch_size`
    #   - `timers`: `pending`, `expired_count`
    #   - `workers`: for the pools `files` and `names` each `limit`, `threads`, `idle`, `queue_depth`
    #   - `gc`: `count`, `duration`
    # @example
    #   Heddle.run do
    #     3.times { Heddle.spin { sleep 0.1 } }
    #     sleep 0.01
    #     Fiber.scheduler.stats[:fibers][:waiting_for]
    #   end # => {close: 1, sleep: 3}
    def stats = Metrics.complete(Native.raw_stats(self))
  end
end
