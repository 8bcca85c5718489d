# frozen_string_literal: true

require_relative "contestants"
require_relative "charts/bars"
require_relative "charts/svg"
require_relative "format"

# What the two pages have in common: one HTML file with its style and its pictures in it, which needs no network and no
# script. Says first what was measured where, and who was left out and why.
class Page
  STYLE = File.read("#{__dir__}/page.css")

  def initialize(session)
    @session = session
    @results = session.results
  end

  def to_s
    <<~HTML
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <title>#{title}</title>
      <style>
      #{STYLE}</style>
      </head>
      <body>
      <main>
      <h1>#{title}</h1>
      <p class="lead">#{lead}</p>
      #{facts}
      #{legend}
      #{body}
      </main>
      </body>
      </html>
    HTML
  end

  private

  def escape(text) = Svg.escape(text)

  def css(contestant) = "c-#{contestant.name.tr("_", "-")}"

  def contestants = @results.cases.flat_map { |bench| @results.contestants(bench) }.uniq(&:name)

  def facts
    about = @session.about
    lines = ["#{about[:ruby]}; #{about[:kernel]}; #{about[:processors]} × #{about[:processor]}",
             "#{about[:when]}; #{about[:rounds]} rounds; scale #{about[:scale]}; load #{about[:load_average]}",
             about[:versions].values.uniq.grep_v(/\ARuby/).join("; "), *absent(about)]
    %(<p class="facts">#{lines.reject(&:empty?).map { |line| escape(line) }.join("<br>")}</p>)
  end

  def absent(about)
    about[:left_out].map { |name, reason| "left out: #{Contestants.find(name).title}: #{reason}" } +
      about[:tools].reject { |_, there| there == "there" }.map { |name, there| "#{name}: #{there}" }
  end

  def legend
    entries = contestants.map { |each| %(<span><i class="#{css(each)}"></i>#{escape(each.title)}</span>) }
    %(<div class="legend">#{entries.join}<span><i class="triangle">▼</i>Heddle's mark</span></div>)
  end

  # Every figure of a case, for those who want the numbers.
  def table(bench)
    heading = ["", bench.unit, "least", "greatest", "spread", "ratio", "starved", *bench.extras, "marks"]
    rows = @results.contestants(bench).map do |contestant|
      cells(bench, contestant, @results.figures(bench, contestant))
    end
    "<table><tr>#{heading.map { |name| "<th>#{escape(name)}</th>" }.join}</tr>" \
      "#{rows.map { |row| "<tr>#{row.map { |cell| "<td>#{cell}</td>" }.join}</tr>" }.join}</table>#{troubles(bench)}"
  end

  def cells(bench, contestant, figures)
    numbers = [bench.figure, :least, :greatest].map { |key| Format.number(figures[key]) }
    [escape(contestant.title), *numbers, Format.percent(figures[:spread]), Format.number(figures[:ratio]),
     figures[:starved] || "–", *bench.extras.map { |key| Format.extra(key, figures) },
     marks(bench, contestant, figures)]
  end

  def marks(bench, contestant, figures)
    bench.marks_of(contestant).map do |mark|
      met = mark.met?(figures)
      %(<span class="#{met ? "met" : "missed"}">#{escape(mark)} #{met ? "✓" : "✗"}</span>)
    end.join(" ")
  end

  def troubles(bench)
    @results.troubles(bench).map { |trouble| %(<p class="unit">left out: #{escape(trouble)}</p>) }.join
  end

  # Bars of a case; a block writes what stands behind each.
  def bars(bench, mark: nil)
    rows = @results.contestants(bench).map do |contestant|
      figures = @results.figures(bench, contestant)
      Bars::Row.new(contestant.title, css(contestant), figures[bench.figure], figures[:least], figures[:greatest],
                    "#{Format.number(figures[bench.figure])}#{yield figures}")
    end
    rows.empty? ? "" : Bars.new(rows, label: bench.title, mark:)
  end

  def card(bench, bars)
    "<section class=\"card\"><h3>#{escape(bench.title)}</h3><p class=\"unit\">#{escape(bench.unit)}, " \
      "#{bench.more_is_better ? "more" : "less"} is better</p>#{bars}#{details(bench)}</section>"
  end

  def details(bench) = "<details><summary>All figures</summary>#{table(bench)}</details>"
end
