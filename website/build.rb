# frozen_string_literal: true

require "erb"
require "fileutils"
require "json"
require_relative "guides"
require_relative "reference"

module Website
  # Builds the static site of the guides and the API reference. Every page works without a server and without a network.
  class Build
    include ERB::Util

    ROOT = File.expand_path("..", __dir__)
    REPOSITORY = "https://github.com/heddle-rb/heddle"
    # The folders whose files the pages refer to.
    ASSETS = { "website/assets" => "assets", "docs/images" => "images" }.freeze

    def initialize(folder, root: ROOT)
      @folder = folder
      @root = root
      @guides = Guides.new(root, REPOSITORY)
      @reference = Reference.new(root)
    end

    # @return [Integer] how many pages there are
    def run
      FileUtils.rm_rf(@folder)
      FileUtils.mkdir_p(@folder)
      write_pages
      write("search-index.js", "window.searchIndex = #{JSON.generate(index)};\n")
      ASSETS.each { |from, to| FileUtils.cp_r(File.join(@root, from), File.join(@folder, to)) }
      @guides.pages.size + @reference.pages.size
    end

    private

    def write(file, text) = File.write(File.join(@folder, file), text)

    def write_pages
      @guides.pages.each { |page| write(page.address, laid_out(page.address, page.title, page.html)) }
      @reference.pages.each { |page| write(page.address, laid_out(page.address, page.path, described(page))) }
      write("404.html", laid_out("404.html", "No such page", "<h1>No such page</h1><p>Search for it.</p>"))
    end

    # The templates see the parameters.
    def laid_out(address, title, body) = rendered("layout", binding)

    def described(page) = rendered("reference", binding)

    def rendered(template, scope)
      source = File.read(File.join(__dir__, "#{template}.erb"), encoding: Encoding::UTF_8)
      ERB.new(source, trim_mode: "-").result(scope)
    end

    # What the search looks through: [title, where it is, address, text].
    def index
      guides = @guides.pages.flat_map do |page|
        page.sections.map { |title, anchor, text| [title, page.title, "#{page.address}##{anchor}", text] }
      end
      reference = @reference.pages.flat_map do |page|
        own = [page.path, "API", page.address, page.object.docstring.to_s]
        [own, *page.entries.map { |entry| [entry.title, "API", "#{page.address}##{entry.anchor}", entry.text] }]
      end
      guides + reference
    end
  end
end
