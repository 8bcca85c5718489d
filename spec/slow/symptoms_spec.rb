# frozen_string_literal: true

# Each program in examples/slow has a fault, and the page tells which. PICTURES, a folder, keeps screenshots.
RSpec.describe "The page of Heddle::Web" do
  include ExamplePrograms
  include Libraries

  before(:context) do
    @browser = Browser.new(width: 1100, height: 700)
  rescue Browser::Missing
    @browser = nil
  end

  after(:context) { @browser&.stop }

  before { skip_or_fail_without("chromium") unless browser }

  attr_reader :browser

  # Opens the page of the program with the fault, while the block runs.
  def with_fault(name)
    run_example("slow/#{name}", "0") do |_, output, process|
      address = address_in(output.gets.to_s)
      reader = Thread.new { output.read }
      browser.visit(address)
      yield
      picture(name)
    ensure
      Process.kill(:INT, process.pid)
      process.join
      reader&.join
    end
  end

  def address_in(line)
    skip_or_fail_without("puma") if line.include?("cannot load such file")
    line[%r{http://\S+/heddle}] or raise "the program's first line has no address: #{line}"
  end

  # Waits until the page gives this answer to one of its questions. The page refreshes each second, so the text that
  # matches is returned at once, and not read again.
  def expect_answer(question, *patterns)
    answer = [*patterns.map { |pattern| "text.match(new RegExp(#{pattern.to_json}))" }, "text"].join(" && ")
    text = browser.wait_until("((text) => #{answer})(document.querySelector('##{question}').innerText)")
    expect(text).to match(Regexp.new(patterns.first))
  end

  def picture(name)
    folder = ENV.fetch("PICTURES", nil) || return
    # So that the table is about more than the start.
    browser.wait_until("parseInt(document.querySelector('#names-count').innerText.replace(/\\D+/, '')) >= 15")
    browser.screenshot(File.join(folder, "slow-#{name.tr("_", "-")}.png"))
  end

  it "tells that a pool has no free connection, and which requests wait for one" do
    with_fault("pool_exhausted") { expect_answer("waiting", "\\d+ fibers: a connection of ActiveRecord's pool") }
  end

  it "tells which path computes, and that its requests wait for each other" do
    with_fault("one_path_computes") do
      expect_answer("computing", "GET /statistics: \\d+")
      expect_answer("slowest", "GET /statistics", "waited for its turn")
    end
  end

  it "tells which path waits for a slow service, and for which" do
    with_fault("slow_upstream") do
      expect_answer("slowest", "GET /prices/:id", "waited for I/O")
      expect_answer("waiting", "fibers: reading .*socket 127\\.0\\.0\\.1:\\d+")
    end
  end

  it "tells that requests follow each other through a lock" do
    with_fault("lock_convoy") do
      expect_answer("slowest", "GET /carts/:id", "waited for locks and queues")
      expect_answer("waiting", "\\d+ fibers: Mutex")
    end
  end

  it "tells which fibers become more and more" do
    with_fault("fiber_leak") do
      expect_answer("waiting", "\\d{2,}\\+? fibers: Queue#pop")
      row = "[...document.querySelectorAll('#names tr')].find((row) => row.innerText.includes('mail about a parcel'))"
      browser.wait_until("parseInt(#{row}.cells[1].innerText) > 10")

      expect(browser.evaluate("#{row}.cells[2].innerText")).to eq "0"
    end
  end

  it "tells which call keeps the thread, and which fibers run late because of it" do
    with_fault("blocked_thread") do
      expect_answer("lates", "GET /pictures/:id ran")
      expect_answer("stalls", "Fiddle::Function#call called at .*blocked_thread\\.rb:\\d+")
    end
  end
end
