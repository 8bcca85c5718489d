# frozen_string_literal: true

# Links from one document to another, and to places in them. The names of the places are GitHub's.
RSpec.describe "The links of" do
  root = ExamplePrograms::ROOT
  documents = Dir.glob(%w[*.md docs/**/*.md benchmarks/*.md spec/*.md verification/**/*.md], base: root)

  # Without code, which may look like links and headings.
  define_method(:prose) do |path|
    File.read(path, encoding: Encoding::UTF_8).gsub(/^```.*?^```/m, "").gsub(/<!--.*?-->/m, "")
  end

  define_method(:places) do |path|
    headings = prose(path).scan(/^\#{1,6} (.+)$/).flatten
    texts = headings.map { |heading| heading.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1') }
    texts.map { |text| text.downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-") }
  end

  define_method(:broken) do |document|
    targets = prose(File.join(root, document)).gsub(/`[^`\n]*`/, "").scan(/\]\(([^)\s]+)\)/).flatten
    targets.grep_v(/\A\w+:/).reject do |target|
      file, place = target.split("#", 2)
      path = file.empty? ? File.join(root, document) : File.expand_path(file, File.dirname(File.join(root, document)))
      File.exist?(path) && (place.nil? || places(path).include?(place))
    end
  end

  sources = Dir.glob("{ext,rakelib}/**/*.{rs,rake}", base: root).map { |path| "/#{path}" }
  # It names Magnus's files.
  internals = Dir.glob("docs/internals/*.md", base: root) - ["docs/internals/magnus.md"] + ["CONTRIBUTING.md"]

  # Files of the project's code that a document for its developers names by their path, or the end of it.
  define_method(:missing_sources) do |document|
    named = prose(File.join(root, document)).scan(%r{`((?:\w+/)*\w+\.(?:rs|rake))`}).flatten
    named.reject { |path| sources.any? { |source| source.end_with?("/#{path}") } }
  end

  internals.each do |document|
    it "#{document} name source files that exist" do
      expect(missing_sources(document)).to eq []
    end
  end

  documents.each do |document|
    it "#{document} lead to something" do
      expect(broken(document)).to eq []
    end
  end
end
