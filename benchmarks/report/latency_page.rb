# frozen_string_literal: true

require_relative "charts/curves"
require_relative "charts/histogram"
require_relative "page"
require_relative "statistics"

# The page of `rake bench:latency`: one table of the p99 with each number of CPU-bound fibers, percentile curves and
# histograms of the sleepers' lateness for each, then bar charts of the other cases.
class LatencyPage < Page
  NINES = 4
  NAMED = { "least" => 0, "50 %" => 50, "90 %" => 90, "99 %" => 99, "99.9 %" => 99.9, "99.99 %" => 99.99 }.freeze
  STEPS = 200

  private

  def title = "Heddle beside others: latency while fibers compute"

  def lead
    "CPU-bound fibers compute for 2.6 seconds (times the scale) in all, without waiting; beside them sleepers sleep " \
      "1 ms and 10 ms. How much later than requested do they wake up? Async does not preempt the CPU-bound fibers; " \
      "the article's technique preempts them every 10 or 50 ms. Ruby's threads have a time slice of 100 ms, or of " \
      "10 ms by RUBY_THREAD_TIMESLICE."
  end

  def body = render("latency")

  def beside = @results.cases.select { |bench| bench.figure == :p99_1ms }

  def others = @results.cases - beside

  def first_mark_class(bench, contestant, figures)
    bench.marks_of(contestant).first&.then { |mark| mark.met?(figures) ? "met" : "missed" }
  end

  def median_overhead(contestant)
    Statistics.median(beside.filter_map { |bench| @results.figures(bench, contestant)[:cpu_overhead] })
  end

  def overhead(figures) = figures[:cpu_overhead] && " (#{signed(figures[:cpu_overhead])})"

  def signed(share) = share.nil? ? "–" : format("%+.1f %%", share * 100)

  # Each further nine gets as much of the width as the first 90 %.
  def place(percent) = -Math.log10(1 - (percent / 100.0)) / NINES

  def curves(bench)
    series = @results.contestants(bench).map do |contestant|
      sorted = @results.samples(bench, contestant, :lateness_1ms).sort
      Curves::Series.new(contestant.title, "#{css(contestant)} #{"dashed" if contestant.name.end_with?("timerfd")}",
                         points(sorted))
    end
    ticks = NAMED.transform_values { |percent| place(percent) }
    Curves.new(series, Curves::Axis.new("percentile", ticks), unit: "ms", mark: 2,
                                                              label: "Lateness by percentile, #{bench.title}")
  end

  # A curve ends at the last percentile that has a sample of its own.
  def points(sorted)
    percents = (0..STEPS).map { |step| (1 - (10**(-step / STEPS.to_f * NINES))) * 100 }
    sampled = percents.take_while { |percent| sorted.size * (100 - percent) / 100.0 >= 1 }
    (sampled + [percents.first]).uniq.map { |percent| [place(percent), Statistics.percentile(sorted, percent)] }
  end

  def histogram(bench, contestant)
    Histogram.new(contestant.title, css(contestant), @results.samples(bench, contestant, :lateness_1ms))
  end
end
