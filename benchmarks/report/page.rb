# frozen_string_literal: true

require "erb"
require_relative "../contestants"
require_relative "charts/bars"
require_relative "charts/svg"
require_relative "format"

# What the two pages have in common: one HTML file that contains its style and its charts, so that it needs no network
# and no script. It begins with what was measured on which machine, and with what was left out and why.
#
# The markup is in templates/. A subclass has `title`, `lead` and `body`.
class Page
  TEMPLATES = "#{__dir__}/templates".freeze
  STYLE = File.read("#{TEMPLATES}/page.css")

  def initialize(session)
    @session = session
    @results = session.results
  end

  def to_s = render("page")

  private

  # Renders a template with this page's methods and the given local variables.
  def render(name, **locals)
    context = binding
    locals.each { |variable, value| context.local_variable_set(variable, value) }
    template(name).result(context)
  end

  def template(name)
    @templates ||= {}
    @templates[name] ||= ERB.new(File.read("#{TEMPLATES}/#{name}.html.erb"), trim_mode: "-")
  end

  def escape(text) = Svg.escape(text)

  def css(contestant) = "c-#{contestant.name.tr("_", "-")}"

  def contestants = @results.cases.flat_map { |bench| @results.contestants(bench) }.uniq(&:name)

  def facts
    about = @session.about
    ["#{about[:ruby]}; #{about[:kernel]}; #{about[:processors]} × #{about[:processor]}",
     "#{about[:when]}; #{about[:rounds]} rounds; scale #{about[:scale]}; load #{about[:load_average]}",
     about[:versions].values.uniq.grep_v(/\ARuby/).join("; "), *missing(about)].reject(&:empty?)
  end

  def missing(about)
    about[:left_out].map { |name, reason| "left out: #{Contestants.find(name).title}: #{reason}" } +
      about[:tools].reject { |_, state| state == "installed" }.map { |name, state| "#{name}: #{state}" }
  end

  def headings(bench)
    ["", bench.unit, "least", "greatest", "spread", "ratio", "starved", *bench.extras, "marks"]
  end

  # The cells of a table's row, without the contestant and the marks.
  def numbers(bench, figures)
    [*[bench.figure, :least, :greatest].map { |key| Format.number(figures[key]) },
     Format.percent(figures[:spread]), Format.number(figures[:ratio]), figures[:starved] || "–",
     *bench.extras.map { |key| Format.extra(key, figures) }]
  end

  # The bar chart of a case; the block returns the text that follows each figure.
  def bars(bench, mark: nil)
    rows = @results.contestants(bench).map do |contestant|
      figures = @results.figures(bench, contestant)
      Bars::Row.new(contestant.title, css(contestant), figures[bench.figure], figures[:least], figures[:greatest],
                    "#{Format.number(figures[bench.figure])}#{yield figures}")
    end
    rows.empty? ? "" : Bars.new(rows, label: bench.title, mark:)
  end
end
