# frozen_string_literal: true

require "kramdown"
require "kramdown-parser-gfm"
require "rouge"

module Website
  # A text in GitHub's Markdown. Anchors of headings are GitHub's, so that the documents' links lead to the same places
  # there and here.
  class Markdown
    # Rouge's HTML with an element around it.
    class Code < Rouge::Formatters::HTML
      def stream(tokens)
        yield '<pre class="highlight"><code>'
        super
        yield "</code></pre>"
      end
    end

    HIGHLIGHTING = { default_lang: "plaintext", formatter: Code, span: { disable: true } }.freeze
    OPTIONS = { input: "GFM", hard_wrap: false, auto_ids: false, syntax_highlighter: :rouge }.freeze
    # What stands for itself, in plain text.
    SIGNS = { hellip: "…", ndash: "–", mdash: "—", lsquo: "'", rsquo: "'", ldquo: '"', rdquo: '"' }.freeze
    # Elements that are words of their own.
    APART = %i[table tr td th li p].freeze

    # @yieldparam link [String] an address in the text
    # @yieldreturn [String] what it is on the page
    def initialize(text, &address)
      visible = text.gsub(/^<!--.*?-->\n/m, "")
      # kramdown changes the Hash.
      @document = Kramdown::Document.new(visible, **OPTIONS, syntax_highlighter_opts: HIGHLIGHTING.dup)
      rewrite(@document.root, &address) if address
    end

    def title = headings.first&.then { |heading| plain(heading) }

    def to_html
      headings.each { |heading| heading.attr["id"] = anchor(plain(heading)) }
      @document.to_html.gsub("<table>", '<div class="table"><table>').gsub("</table>", "</table></div>")
    end

    # @return [Array<Array(String, String, String)>] title, anchor and text of each section
    def sections
      parts = @document.root.children.slice_before { |element| element.type == :header }
      parts.filter_map do |heading, *rest|
        next unless heading.type == :header

        [plain(heading), anchor(plain(heading)), rest.map { |element| plain(element) }.join(" ").squeeze(" ")]
      end
    end

    private

    def headings = @document.root.children.select { |element| element.type == :header }

    def anchor(text) = text.downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-")

    def plain(element)
      case element.type
      when :text, :codespan, :codeblock then element.value
      when :typographic_sym, :smart_quote then SIGNS.fetch(element.value, "")
      when :entity then element.value.char
      when :blank, :br then " "
      else "#{element.children.map { |child| plain(child) }.join}#{" " if APART.include?(element.type)}"
      end
    end

    def rewrite(element, &address)
      key = { a: "href", img: "src" }[element.type]
      element.attr[key] = address.call(element.attr[key]) if key
      element.children.each { |child| rewrite(child, &address) }
    end
  end
end
