# frozen_string_literal: true

# The page in a headless Chromium, and a Puma server with the plugin. PICTURES, a folder, keeps screenshots.
RSpec.describe "The page of Heddle::Web in a browser" do
  include PumaServers

  app = <<~'RUBY'
    require "heddle/web"
    $gate = Thread::Queue.new
    $one = Thread::Queue.new
    def wait_here = $gate.pop
    $stalls = Thread::Queue.new
    Heddle.on_stall { |stall| $stalls << stall if stall.backtrace.join.include?("compute_until_reported") }
    # On a busy machine a time slice may be reported for another place, so there are many of a second.
    def compute_until_reported
      Heddle.without_preemption { 10_000_000.times { break unless $stalls.empty? } } && sleep(0) while $stalls.empty?
    end
    # A report waits here if an example has asked for that.
    $held = {}
    map("/tools/heddle") do
      run(lambda do |env|
        $held[env["PATH_INFO"]]&.pop
        Heddle::Web.call(env)
      end)
    end
    $schedulers = Thread::Queue.new
    run(lambda do |env|
      case env["PATH_INFO"]
      when %r{\A/wait/} then wait_here
      when "/one" then $one.pop
      when "/far" then Heddle.waiting_for("a far service #{"x" * 200}") { $gate.pop }
      when "/go" then $one << true
      when "/fill" then 3000.times { |n| Fiber.schedule { Heddle.annotate("subscriber #{n}") { $gate.pop } } }
      when "/stall" then compute_until_reported
      when %r{\A/hold(/.*)} then $held[$1] = Thread::Queue.new
      when %r{\A/release(/.*)} then $held.delete($1).close
      when "/open" then Thread.new { Heddle.run { $schedulers.pop } }
      when "/close" then $schedulers << true
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
      sleep 0.2 # at least
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
    # What the last example's page has asked another server for is read before it is forgotten.
    visit
    browser.forget
    visit("#{page}/")
    browser.wait_until("document.querySelectorAll('#fibers tr').length > 0")

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

  def open_row(text)
    wait_for_row(text)
    browser.evaluate(<<~JS)
      [...document.querySelectorAll("#fibers button")].find((each) => each.innerText.includes(#{text.to_json})).click()
    JS
  end

  # The process does not answer requests for the report while the block runs.
  def holding(path)
    server.get("/hold#{path}")
    yield
  ensure
    server.get("/release#{path}")
  end

  it "says that a backtrace loads, until it has arrived" do
    with_waiting("/wait/loading") do
      visit
      holding("/backtraces.json") do
        open_row("GET /wait/loading")

        expect(browser.text("#fibers .details")).to eq "Loading the backtrace…"
      end
      browser.wait_until("document.querySelector('#fibers .details').innerText.includes('wait_here')")
    end
  end

  it "folds the frames of gems and of Ruby, and shows those of the program" do
    with_waiting("/wait/folded") do
      visit
      open_row("GET /wait/folded")
      browser.wait_until("document.querySelector('#fibers .fold')")
      shown = browser.text("#fibers .details")

      expect(shown).to include("wait_here").and match(/^\d+ frames of .*puma/)
      expect(shown).not_to include("puma/server.rb")
      browser.click("#fibers .fold summary")
      expect(browser.text("#fibers .details")).to include("puma/server.rb")
    end
  end

  it "finds the fibers that wait for something that is too long to be shown" do
    with_waiting("/far") do
      visit
      buttons = "[...document.querySelectorAll('#waits button')]"
      browser.wait_until("#{buttons}.some((each) => each.innerText.includes('a far service'))")
      browser.evaluate("#{buttons}.find((each) => each.innerText.includes('a far service')).click()")
      browser.wait_until("document.querySelector('#fibers-count').innerText.startsWith('1 of ')")

      expect(rows).to match [a_string_starting_with("GET /far")]
    end
  end

  it "says that a list is of another filter, until the answer has arrived" do
    with_waiting("/wait/busy") do
      visit
      wait_for_row("GET /wait/busy")
      holding("/fibers.json") do
        filter("no such fiber")
        expect(browser.evaluate("document.querySelector('#fibers').closest('section').ariaBusy")).to eq "true"
        expect(browser.text("#fibers-count")).to eq "filtering…"
      end
      browser.wait_until("document.querySelector('#fibers').closest('section').ariaBusy === 'false'")

      expect(rows).to be_empty
    end
  end

  it "closes an opened row when its fiber serves another request" do
    socket = server.connect
    socket.write("GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n")
    visit
    open_row("GET /one")
    server.get("/go")
    socket.readpartial(1000)
    socket.write("GET /wait/two HTTP/1.1\r\nHost: localhost\r\n\r\n")
    wait_for_row("GET /wait/two")

    expect(browser.evaluate("document.querySelectorAll('#fibers .detail').length")).to eq 0
  ensure
    socket&.close
  end

  it "does not list its own requests" do
    with_waiting("/wait/listed") do
      visit
      wait_for_row("GET /wait/listed")
      browser.wait_until("document.querySelectorAll('#names tr').length > 0")

      expect(browser.text("#names") + rows.join).not_to include("/tools/heddle")
    end
  end

  it "lists the fibers of idle connections if it is asked to" do
    with_waiting("/wait/all") do
      visit
      wait_for_row("GET /wait/all")
      browser.click("#all")
      wait_for_row("heddle: lag")
      # Another answer than that with the rows.
      browser.wait_until("document.querySelector('#names').innerText.includes('without a name')")

      expect(browser.text("#names")).to include("fibers without a name")
    end
  end

  # In the next page, the reports at this path are what the script makes of them.
  def with_report(path, script)
    identifier = browser.with_script(<<~JS)
      window.answers = 0;
      const { fetch: ask } = window;
      window.fetch = async (target, ...rest) => {
        const answer = await ask(target, ...rest);
        if (!String(target).includes(#{path.to_json})) return answer;
        const report = await answer.json();
        answers += 1;
        #{script}
        return new Response(JSON.stringify(report));
      };
    JS
    visit
    yield
  ensure
    browser.without_script(identifier)
  end

  def with_names(script)
    with_report("names.json", script) do
      browser.wait_until("answers > 0 && document.querySelectorAll('#timeline rect').length > 0")
      yield
    end
  end

  it "writes both ends of each chart's scale, which are round numbers" do
    with_report("stats.json", <<~JS) do
      for (const scheduler of report.schedulers) scheduler.lag = 0.037;
      window.written = [];
      CanvasRenderingContext2D.prototype.fillText = (text) => written.push(text);
    JS
      scales = browser.wait_until("written.includes('100\u00A0%') && written.filter((text) => !text.includes(':'))")

      expect(scales.uniq).to contain_exactly("0", "50 ms", "0\u00A0%", "100\u00A0%")
    end
  end

  it "observes the size of no card that it has removed" do
    script = browser.with_script(<<~JS)
      window.observers = 0;
      const { observe, disconnect } = ResizeObserver.prototype;
      ResizeObserver.prototype.observe = function (...all) { window.observers += 1; return observe.apply(this, all); };
      ResizeObserver.prototype.disconnect = function () { window.observers -= 1; return disconnect.call(this); };
    JS
    visit
    browser.wait_until("document.querySelectorAll('.card').length === 2")
    server.get("/open")
    browser.wait_until("document.querySelectorAll('.card').length === 3 && observers === 6")
    server.get("/close")
    browser.wait_until("document.querySelectorAll('.card').length === 2")

    expect(browser.evaluate("observers")).to eq 4
  ensure
    browser.without_script(script)
  end

  it "forgets the processes of a cluster that have not answered for five minutes" do
    # Each answer is of another process, and a minute later than the one before.
    with_report("stats.json", <<~JS) do
      report.pid = 1000 + answers;
      const now = answers * 60000;
      performance.now = () => now;
    JS
      # The page need not wait for its next answer.
      browser.evaluate("setInterval(() => document.dispatchEvent(new Event('visibilitychange')), 10)")
      browser.wait_until("answers > 12")

      expect(browser.evaluate("document.querySelectorAll('#pid option').length")).to be_between(2, 7)
    end
  end

  def choose_moment(position)
    browser.evaluate(<<~JS)
      (() => {
        const range = document.querySelector("#moment");
        range.value = #{position};
        range.dispatchEvent(new Event("input"));
      })()
    JS
  end

  it "shows the moment that was chosen also after the process's clock has stepped" do
    with_names("for (const slot of report.history) slot.at += 20 * answers;") do
      choose_moment(29)
      browser.wait_until("answers > 3")

      expect(browser.evaluate("document.querySelector('#now').hidden")).to be false
    end
  end

  it "says how long ago a moment was where the browser's clock is an hour ahead" do
    with_names("Date.now = () => performance.timeOrigin + performance.now() + 3600000;") do
      choose_moment(29)

      expect(browser.text("#moment-text")).to match(/, [\d.]+ (µs|ms|s) ago\z/)
    end
  end

  it "shows a moment at its place after minutes in which nothing was counted" do
    with_names("report.history = [{ ...report.history[0], number: -1, ago: 255 }, ...report.history.slice(-1)];") do
      places = "[...document.querySelectorAll('#timeline rect')].map((bar) => Math.floor(bar.getAttribute('x') / 10))"

      expect(browser.evaluate(places).uniq).to eq [4, 29]
    end
  end

  it "says which name is slow, not that the names beyond the limit are" do
    with_names("report.names.push({ ...report.names[0], name: 'other', kind: 'other', p99: 900, ran: 900 });") do
      browser.wait_until("document.querySelector('#names').innerText.includes('</b>box')")

      expect(browser.text("#slowest strong")).not_to match(/\A(…|other names|Nothing yet)\z/)
    end
  end

  it "is not wider than a phone" do
    with_waiting("/wait/phone/#{"x" * 200}") do
      browser.size(360, 800)
      visit
      open_row("GET /wait/phone")
      browser.wait_until("document.querySelector('#fibers .fold')")

      expect(browser.evaluate("document.documentElement.scrollWidth")).to eq 360
      picture("phone")
    end
  ensure
    browser.size(1280, 900)
  end

  it "is dark where the user prefers that" do
    visit
    grounds = %w[light dark].map do |scheme|
      browser.color_scheme(scheme)
      browser.evaluate("getComputedStyle(document.body).backgroundColor").scan(/\d+/).sum(&:to_i)
    end

    expect([grounds.first > 600, grounds.last < 150]).to eq [true, true]
  ensure
    browser.color_scheme("light")
  end

  it "has keys for the filter and for the pause" do
    visit
    browser.press("/")
    focused = browser.evaluate("document.activeElement.id")
    browser.press("p")
    typed = browser.evaluate("document.querySelector('#q').value")
    browser.press("Escape")
    cleared = browser.evaluate("document.querySelector('#q').value")
    browser.evaluate("document.activeElement.blur()")
    browser.press("p")

    expect([focused, typed, cleared, browser.text("#pause")]).to eq ["q", "p", "", "Continue"]
  end

  it "sorts by the column that a key presses" do
    with_waiting("/wait/sorted") do
      visit
      browser.wait_until("document.querySelectorAll('#names tr').length > 0")
      browser.evaluate("document.querySelector('th button[data-sort=p99]').focus()")
      browser.press("Enter")

      expect(browser.evaluate("document.querySelector('th[aria-sort=descending]').innerText")).to start_with("p99")
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
    browser.evaluate(<<~JS)
      window.first = fetch("/tools/heddle/trace", { method: "POST" }).then((answer) => answer.text());
      document.querySelector("#trace").click();
    JS
    browser.wait_until("!document.querySelector('#notice').hidden")

    expect(browser.text("#notice")).to match(/\ANo trace: a trace is being recorded|\ASaved /)
    # It must not be in the way of the next example's.
    browser.evaluate("first.then(() => true)")
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
    browser.wait_until("document.querySelector('#waits').innerText !== ''")
    shown = rows.size
    more = browser.text("#rest")
    picture("many")
    expect(browser.text("#waits")).to match(/\A500\+ fibers wait for Queue#pop/)
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
