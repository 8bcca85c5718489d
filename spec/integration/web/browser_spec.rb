# frozen_string_literal: true

# The page in a headless Chromium, and a Puma server with the plugin. PICTURES, a folder, keeps screenshots.
RSpec.describe "The page of Heddle::Web in a browser" do
  include PumaServers

  app = <<~'RUBY'
    require "heddle/web"
    $gate = Thread::Queue.new
    def wait_here = $gate.pop
    $stalls = Thread::Queue.new
    Heddle.on_stall { |stall| $stalls << stall if stall.location }
    def compute_until_reported = (Integer.sqrt(2) while $stalls.empty?)
    map("/tools/heddle") { run Heddle::Web }
    run(lambda do |env|
      case env["PATH_INFO"]
      when %r{\A/wait/} then wait_here
      when "/fill" then 3000.times { |n| Fiber.schedule { Heddle.annotate("subscriber #{n}") { $gate.pop } } }
      when "/stall" then Heddle.without_preemption { compute_until_reported }
      end
      [200, { "content-type" => "text/plain" }, ["done"]]
    end)
    # Another scheduler, in a thread of its own.
    Thread.new do
      Thread.current.name = "mailer"
      Heddle.run { Heddle.annotate("<b>out</b>box<script>document.title = 1</script>") { Thread::Queue.new.pop } }
    end
    # A trace that takes no five seconds.
    Heddle.define_singleton_method(:trace) do |path, seconds:|
      raise Heddle::Error, "a trace is being recorded" if $tracing
      $tracing = true
      sleep 0.2
      File.write(path, "a trace of #{seconds} s")
    ensure
      $tracing = false
    end
  RUBY

  before(:context) do
    config = "heddle stall_after: 0.05\nforce_shutdown_after :immediately\n"
    @server = PumaServer.new(app, config, env: { "RACK_ENV" => "development" })
    @browser = Browser.new
  rescue PumaServer::Missing, Browser::Missing => e
    @missing = e.is_a?(Browser::Missing) ? "chromium" : "puma"
  end

  after(:context) do
    @browser&.stop
    @server&.stop
  end

  before { skip_or_fail_without(@missing) if @missing }

  before { browser.forget }

  attr_reader :server, :browser

  # @return [String] where the page is
  def page = "http://127.0.0.1:#{server.port}/tools/heddle"

  def visit(address = page)
    browser.visit(address)
    browser.wait_until("document.querySelector('#live').innerText === 'live'")
  end

  def picture(name)
    folder = ENV.fetch("PICTURES", nil) || return
    %w[light dark].each do |scheme|
      browser.color_scheme(scheme)
      browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
      browser.screenshot(File.join(folder, "#{name}-#{scheme}.png"))
    end
    browser.color_scheme("light")
  end

  def rows = browser.evaluate("[...document.querySelectorAll('#fibers tr')].map((row) => row.innerText)")

  def wait_for_row(text)
    rows = "[...document.querySelectorAll('#fibers tr')]"
    browser.wait_until("#{rows}.some((row) => row.innerText.includes(#{text.to_json}))")
  end

  def filter(text)
    browser.evaluate(<<~JS)
      (() => {
        const field = document.querySelector("#q");
        field.value = #{text.to_json};
        field.dispatchEvent(new Event("input"));
      })()
    JS
  end

  # Requests that wait while the block runs, and after it: the server does not notice that the client has gone.
  def with_waiting(*paths)
    sockets = paths.map { |path| server.connect.tap { |socket| socket.write("GET #{path} HTTP/1.0\r\n\r\n") } }
    yield
  ensure
    sockets&.each(&:close)
  end

  it "shows the process, and each scheduler with its figures and charts" do
    visit
    browser.wait_until("document.querySelectorAll('.card canvas').length === 4")

    expect(browser.text("#process")).to eq "Process #{server.pid} · Heddle #{Heddle::VERSION} · Ruby #{RUBY_VERSION}"
    expect(browser.text("#schedulers")).to include("puma srv", "mailer", "Lag", "Busy", "Preemptions")
    picture("few")
  end

  it "asks no other host, and has no error" do
    visit("#{page}/")
    browser.wait_until("document.querySelectorAll('#fibers tr').length > 3")

    expect(browser.requests.grep(/^http/)).to all start_with("http://127.0.0.1:#{server.port}/tools/heddle")
    expect(browser.problems).to be_empty
  end

  it "shows names as text, whatever they contain" do
    visit
    wait_for_row("<b>out</b>box<script>document.title = 1</script>")

    expect(browser.evaluate("document.title")).to eq "Heddle"
    expect(browser.evaluate("document.querySelectorAll('main b, main script').length")).to eq 0
  end

  it "shows what each request waits for, and finds it by its name" do
    with_waiting("/wait/both?1", "/wait/both?2") do
      visit
      wait_for_row("GET /wait/both")
      filter("get /wait/both")
      browser.wait_until("document.querySelector('#fibers-count').innerText.startsWith('2 of ')")

      expect(rows.grep(%r{GET /wait/both.*waiting.*Queue#pop}m).size).to eq 2
      expect(rows.grep(/outbox/)).to be_empty
    end
  end

  it "shows a backtrace after a press of a key" do
    with_waiting("/wait/key") do
      visit
      wait_for_row("GET /wait/key")
      buttons = "[...document.querySelectorAll('#fibers button')]"
      button = "#{buttons}.find((each) => each.innerText.includes('GET /wait/key'))"
      browser.evaluate("#{button}.focus()")
      browser.press("Enter")
      browser.wait_until("document.querySelector('#fibers pre')?.innerText.includes('wait_here')")

      expect(browser.evaluate("document.activeElement === #{button}")).to be true
      expect(browser.evaluate("#{button}.getAttribute('aria-expanded')")).to eq "true"
      picture("backtrace")
    end
  end

  it "lists stalls" do
    server.get("/stall")
    visit
    # On a busy machine there may be others.
    browser.wait_until("document.querySelector('#stalls').innerText.includes('config.ru:')")

    expect(browser.text("#stalls")).to match(/config\.ru:\d+/)
  end

  it "saves a trace" do
    visit
    browser.click("#trace")
    browser.wait_for("Browser.downloadProgress") { |event| event["state"] == "completed" }
    file, = Dir[File.join(browser.folder, "heddle-#{server.pid}-*.trace.json.gz")]

    expect(File.read(file)).to eq "a trace of 5 s"
    browser.wait_until("document.querySelector('#notice').innerText.startsWith('Saved heddle-')")
  end

  it "says why there is no trace while another page records one" do
    visit
    browser.evaluate("fetch('/tools/heddle/trace', { method: 'POST' }); document.querySelector('#trace').click()")
    browser.wait_until("!document.querySelector('#notice').hidden")

    expect(browser.text("#notice")).to match(/\ANo trace: a trace is being recorded|\ASaved /)
  end

  it "shows two hundred of thousands of fibers, and finds the others" do
    with_server(app, env: { "RACK_ENV" => "development" }) do |other|
      other.get("/fill")
      visit("http://127.0.0.1:#{other.port}/tools/heddle")
      expect_two_hundred
    end
  end

  def expect_two_hundred
    browser.wait_until("document.querySelectorAll('#fibers tr').length >= 200")
    shown = rows.size
    more = browser.text("#rest")
    picture("many")
    filter("subscriber 2987")
    wait_for_row("subscriber 2987")

    expect(shown).to be_between(200, 202)
    expect(more).to match(/\A2,[89]\d\d more match/)
    browser.wait_until("document.querySelector('#fibers-count').innerText.startsWith('1 of 3,')")
  end

  it "says so when the server has gone, and continues with what it has shown" do
    with_server(app, env: { "RACK_ENV" => "development" }) do |other|
      visit("http://127.0.0.1:#{other.port}/tools/heddle")
      wait_for_row("fiber")
      other.signal(:KILL)
      browser.wait_until("document.querySelector('#live').innerText.startsWith('no answer')")

      expect(rows).not_to be_empty
    end
  end
end
