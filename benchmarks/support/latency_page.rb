# frozen_string_literal: true

require_relative "charts/curves"
require_relative "charts/histogram"
require_relative "page"
require_relative "statistics"

# The page of `rake bench:latency`: the p99 of all hog counts in one table, percentile curves and histograms of the
# sleepers' lateness for each, then the rest as bars.
class LatencyPage < Page
  NINES = 4
  NAMED = { "least" => 0, "50 %" => 50, "90 %" => 90, "99 %" => 99, "99.9 %" => 99.9, "99.99 %" => 99.99 }.freeze
  STEPS = 200

  private

  def title = "Heddle beside others: latency while fibers compute"

  def lead
    "Hogs compute 2.6 seconds (times the scale) in all, without ever waiting; beside them sleepers sleep 1 ms and " \
      "10 ms. How much later than asked for do they wake up? Async and its epoll wait for the hogs; the article " \
      "interrupts them every 10 or 50 ms."
  end

  def body
    cards = others.map { |bench| card(bench, bars(bench) { |figures| overhead(figures) }) }
    "<h2>p99 of the 1 ms sleepers' lateness</h2><div class=\"card\">#{overview}</div>" \
      "#{beside.map { |bench| distribution(bench) }.join("\n")}" \
      "<h2>Costs, echoes, and who preempts nobody</h2><div class=\"cards\">#{cards.join}</div>"
  end

  def beside = @results.cases.select { |bench| bench.figure == :p99_1ms }

  def others = @results.cases - beside

  # A row per contestant, a column per number of hogs, as the marks are told.
  def overview
    heading = ["", *beside.map(&:title), "CPU time"].map { |name| "<th>#{escape(name)}</th>" }.join
    rows = beside.flat_map { |bench| @results.contestants(bench) }.uniq(&:name).map { |each| overview_row(each) }
    "<table><tr>#{heading}</tr>#{rows.join}</table>#{beside.map { |bench| troubles(bench) }.join}" \
      "<p class=\"unit\">milliseconds, median of the rounds; CPU time: the whole process, relative to the same work " \
      "with nobody beside, median over the numbers of hogs. Marks: at most 2 ms, at most +1 %.</p>"
  end

  def overview_row(contestant)
    overheads = beside.filter_map { |bench| @results.figures(bench, contestant)[:cpu_overhead] }
    "<tr><td>#{escape(contestant.title)}</td>#{beside.map { |bench| lateness(bench, contestant) }.join}" \
      "<td>#{signed(Statistics.median(overheads))}</td></tr>"
  end

  def lateness(bench, contestant)
    figures = @results.figures(bench, contestant)
    css_class = bench.marks_of(contestant).first&.then { |mark| mark.met?(figures) ? "met" : "missed" }
    "<td class=\"#{css_class}\">#{Format.number(figures[bench.figure])}</td>"
  end

  def overhead(figures) = figures[:cpu_overhead] && " (#{signed(figures[:cpu_overhead])})"

  def signed(share) = share.nil? ? "–" : format("%+.1f %%", share * 100)

  def distribution(bench)
    "<h2>#{escape(bench.title)}</h2><div class=\"card\">" \
      "<p class=\"unit\">lateness of the 1 ms sleepers by percentile; each nine is as wide as the one before</p>" \
      "#{curves(bench)}<p class=\"unit\">share of all wake-ups by lateness</p>#{histograms(bench)}" \
      "#{details(bench)}</div>"
  end

  # As much of the width for each further nine as for the first 90 %.
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

  # No further than there are samples to tell of.
  def points(sorted)
    percents = (0..STEPS).map { |step| (1 - (10**(-step / STEPS.to_f * NINES))) * 100 }
    told = percents.take_while { |percent| sorted.size * (100 - percent) / 100.0 >= 1 }
    (told + [percents.first]).uniq.map { |percent| [place(percent), Statistics.percentile(sorted, percent)] }
  end

  def histograms(bench)
    @results.contestants(bench).map do |contestant|
      Histogram.new(contestant.title, css(contestant), @results.samples(bench, contestant, :lateness_1ms))
    end.join("\n")
  end
end
