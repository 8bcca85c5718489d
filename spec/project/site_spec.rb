# frozen_string_literal: true

require "tmpdir"

# The site that `rake docs` builds, in a browser where there is one.
RSpec.describe "The site of the documents" do
  include Libraries

  before(:context) do
    @folder = Dir.mktmpdir
    require_relative "../../website/build"
    Website::Build.new(@folder).run
  rescue LoadError => e
    @missing = e.message[/cannot load such file -- (\S+)/, 1] || raise
  end

  before { skip_or_fail_without(@missing) if @missing }

  after(:context) { FileUtils.rm_rf(@folder) }

  # The anchors of a page.
  def places(html) = html.scan(/ id="([^"]+)"/).flatten

  def broken(page, html)
    html.scan(/(?:href|src)="([^"]+)"/).flatten.grep_v(/\A\w+:/).reject do |link|
      file, place = link.split("#", 2)
      path = File.join(@folder, file.empty? ? page : file)
      File.exist?(path) && (place.nil? || places(File.read(path)).include?(place))
    end
  end

  it "has no link that leads nowhere" do
    pages = Dir.glob("*.html", base: @folder)
    links = pages.to_h { |page| [page, broken(page, File.read(File.join(@folder, page)))] }

    expect(links.reject { |_, found| found.empty? }).to eq({})
  end

  it "asks no other host for anything" do
    pages = Dir.glob(File.join(@folder, "*.html")).map { |page| File.read(page) }
    elements = pages.flat_map { |page| page.scan(/<(?:script|link|img)[^>]*>/) }

    expect(elements.grep(%r{(?:src|href)="\w+://})).to eq []
  end

  it "has a page with each guide of docs/, and with each public class" do
    guides = Dir.glob("docs/*.md", base: ExamplePrograms::ROOT).map { |path| File.basename(path, ".md") }

    expect(guides + %w[api-heddle api-heddle-scheduler api-heddle-semaphore]).to all(satisfy do |name|
      File.exist?(File.join(@folder, "#{name}.html"))
    end)
  end

  describe "in a browser" do
    let(:browser) { @browser }

    before do
      @browser = Browser.new(width: 390, height: 800)
      browser.visit("file://#{@folder}/index.html")
    rescue Browser::Missing
      skip_or_fail_without("chromium")
    end

    after { @browser&.stop }

    it "finds a method by its name, and leads to it" do
      browser.evaluate(<<~JS)
        const field = document.getElementById("search");
        field.value = "cancel_after";
        field.dispatchEvent(new Event("input"));
      JS
      expect(browser.text("#results .chosen")).to start_with("Heddle.cancel_after")
      browser.click("#results .chosen")
      browser.wait_until("document.getElementById('class-cancel_after') !== null")
      expect(browser.problems).to eq []
    end

    it "is no wider than a phone, and has its menu behind a button" do
      expect(browser.evaluate("document.documentElement.scrollWidth")).to be <= 390
      expect(browser.evaluate("getComputedStyle(document.getElementById('navigation')).display")).to eq "none"
      browser.click("#menu")
      expect(browser.evaluate("getComputedStyle(document.getElementById('navigation')).display")).to eq "block"
    end
  end
end
