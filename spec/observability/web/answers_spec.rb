# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests
  include Libraries

  assets = File.expand_path("../../../lib/heddle/web/assets", __dir__)
  scripts = Dir.children(assets).grep(/\.js\z/).map { |name| "/#{name}" }
  gets = ["", "/", "/page.css", *scripts.sort, "/icon.svg", "/uplot.js", "/uplot.css",
          "/names.json", "/fibers.json", "/backtraces.json", "/stats.json", "/stalls.json"]

  it "has the page, its files and its reports" do
    expect(gets.map { |path| web(path).status }).to all eq 200
  end

  it "has the same headers and no body for HEAD" do
    gets.each do |path|
      answer = web(path, "HEAD")

      expect([answer.status, answer.body]).to eq [200, ""]
      expect(answer.headers.keys).to eq web(path).headers.keys
    end
  end

  ["/nowhere", "/../page.js", "/page.js/", "/uplot/LICENSE.txt", "//", "/stats.json/.."].each do |path|
    it "answers #{path} with 404" do
      expect(web(path).status).to eq 404
    end
  end

  it "answers other methods with 405, and says which there are" do
    answers = [web("/stats.json", "POST"), web("/", "DELETE"), web("/trace"), web("/trace", "HEAD")]

    expect(answers.map { |answer| [answer.status, answer.headers["allow"]] })
      .to eq [[405, "GET, HEAD"], [405, "GET, HEAD"], [405, "POST"], [405, "POST"]]
  end

  it "forbids scripts in the page, other hosts, frames, guessing of types, and caches" do
    expect(web("/").headers).to include(
      "content-security-policy" => /\Adefault-src 'self';.* frame-ancestors 'none'\z/,
      "x-content-type-options" => "nosniff", "x-frame-options" => "DENY", "cache-control" => "no-store"
    )
  end

  it "has neither scripts nor styles nor other hosts in its page" do
    page = web("/").body

    expect(page).not_to match(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:/)
    expect(page.scan(/(?:src|href)="([^#"][^"]*)"/).flatten).to all start_with("/heddle/")
  end

  it "refers to its files below the mount point, with and without a slash at the end" do
    ["", "/"].each { |path| expect(web(path).body).to include(' src="/heddle/page.js"') }
    expect(web("/", "SCRIPT_NAME" => "").body).to include(' src="/page.js"')
  end

  it "takes the mount point as it is, also where a pattern's replacement would mean something else" do
    expect(web("/", "SCRIPT_NAME" => "/a\\0b").body).to include(' src="/a\0b/page.js"')
  end

  it "escapes the mount point" do
    expect(web("/", "SCRIPT_NAME" => %(/"><script>)).body).to include(' src="/&quot;&gt;&lt;script&gt;/page.js"')
  end

  it "answers invalid parameters with 400, and says what is valid" do
    queries = ["state=asleep", "order=x", "only=x", "limit=0", "limit=1001", "limit=ten", "q=a;b&limit=%zz"]
    answers = queries.map { |query| web("/fibers.json?#{query}") }
    queries = ["window=0", "window=301", "window=1.5", "window=%FF", "only=all"]
    answers += queries.map { |query| web("/names.json?#{query}") }

    expect(answers.map(&:status)).to all eq 400
    expect(answers.first.body).to eq %(state: must be one of running, runnable, waiting, not "asleep"\n)
  end

  it "obeys Rack's specification" do
    output = printed(<<~RUBY, library: "rack", environment: { "RACK_ENV" => "test" })
      require "heddle/web"
      require "rack/lint"
      require "rack/mock_request"
      require "rack/urlmap"
      app = Rack::Lint.new(Rack::URLMap.new("/deep/heddle" => Rack::Lint.new(Heddle::Web)))
      client = Rack::MockRequest.new(app)
      paths = #{gets.inspect} + ["/nowhere"]
      statuses = paths.flat_map do |path|
        %w[GET HEAD POST].map { |method| client.request(method, "/deep/heddle\#{path}").status }
      end
      puts statuses.tally.sort.join(" ")
      puts client.get("/deep/heddle").body[/src="(.*page.js)"/, 1]
    RUBY

    expect(output).to eq "200 #{gets.size * 2} 404 3 405 #{gets.size}\n/deep/heddle/page.js\n"
  end
end
