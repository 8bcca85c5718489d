# frozen_string_literal: true

require_relative "markdown"

module Website
  # The documents of the repository as pages: README.md, CHANGELOG.md, CONTRIBUTING.md and docs/**/*.md.
  class Guides
    # The menu. What is in no group is under 'Internals'.
    GROUPS = {
      "Start" => %w[README.md docs/comparison.md docs/performance.md docs/libraries.md docs/glossary.md],
      "Move" => %w[docs/migrating.md docs/async.md docs/rails.md docs/puma.md],
      "Write" => %w[docs/structured-concurrency.md docs/preemption.md docs/testing.md],
      "Run" => %w[docs/deployment.md docs/rollout.md docs/upgrading.md docs/observability.md docs/apm.md
                  docs/troubleshooting.md],
      "Project" => %w[CHANGELOG.md CONTRIBUTING.md SECURITY.md]
    }.freeze
    PATTERNS = %w[README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md docs/internals/*.md].freeze

    # `path` is that of the document, `address` that of its page, `sections` are [title, anchor, text].
    Page = Data.define(:path, :address, :title, :html, :sections)

    def initialize(root, repository)
      @root = root
      @repository = repository
      @documents = Dir.glob(PATTERNS, base: root)
    end

    def pages = @pages ||= @documents.map { |path| page(path) }

    # @return [Hash{String => Array<Page>}] the pages of each group, in the order of the menu
    def menu
      known = GROUPS.transform_values { |paths| paths.map { |path| pages.find { |page| page.path == path } } }
      rest = pages - known.values.flatten
      known.merge("Internals" => rest.sort_by(&:title))
    end

    private

    def page(path)
      markdown = Markdown.new(File.read(File.join(@root, path), encoding: Encoding::UTF_8)) { |link| address_of(link, path) }
      title = path == "README.md" ? "Heddle" : markdown.title
      Page.new(path:, address: address(path), title:, html: markdown.to_html, sections: markdown.sections)
    end

    # The pages are beside each other; those of docs/internals/ are named so.
    def address(path)
      return "index.html" if path == "README.md"

      "#{path.delete_prefix("docs/").tr("/", "-").delete_suffix(".md").downcase}.html"
    end

    # A link to another document leads to its page, one to another file of the repository to that file.
    def address_of(link, from)
      return link if link.match?(/\A(\w+:|#)/)

      file, place = link.split("#", 2)
      path = File.expand_path(file, File.join("/", File.dirname(from))).delete_prefix("/")
      target = if @documents.include?(path) then address(path)
               elsif path.match?(%r{\Adocs/images/}) then path.delete_prefix("docs/")
               else "#{@repository}/blob/main/#{path}"
               end
      [target, place].compact.join("#")
    end
  end
end
