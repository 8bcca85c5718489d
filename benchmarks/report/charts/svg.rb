# frozen_string_literal: true

require "cgi/escape"

# SVG elements as strings, and a logarithmic scale. Colours are the page's CSS classes, one per contestant, so that one
# drawing fits a light and a dark page.
module Svg
  module_function

  def escape(text) = CGI.escapeHTML(text.to_s)

  def element(name, content = nil, title: nil, **attributes)
    written = attributes.map { |key, value| %( #{key.to_s.tr("_", "-")}="#{escape(value)}") }.join
    inside = "#{"<title>#{escape(title)}</title>" if title}#{content}"
    inside.empty? ? "<#{name}#{written}/>" : "<#{name}#{written}>#{inside}</#{name}>"
  end

  def text(content, left, top, **) = element("text", escape(content), x: left.round(1), y: top.round(1), **)

  def line(from, to, **)
    element("line", x1: from[0].round(1), y1: from[1].round(1), x2: to[0].round(1), y2: to[1].round(1), **)
  end

  def drawing(width, height, elements, label:)
    element("svg", elements.join("\n"), viewBox: "0 0 #{width} #{height}", role: "img", "aria-label": label)
  end

  # Maps a domain to a range logarithmically; its ticks are the powers of ten within the domain.
  class LogScale
    def initialize(domain, range)
      @low, @high = domain.map { |value| Math.log10(value) }
      @high = @low + 1 if @high <= @low
      @from, @to = range
    end

    def call(value)
      share = ((Math.log10([value, 10**@low].max) - @low) / (@high - @low)).clamp(0, 1)
      @from + (share * (@to - @from))
    end

    def ticks = (@low.ceil..@high.floor).map { |power| power.negative? ? 10.0**power : 10**power }
  end
end
