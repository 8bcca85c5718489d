# frozen_string_literal: true

require "fileutils"
require "io/nonblock"
require "json"
require "timeout"
require "tmpdir"

# A headless Chromium with one page, driven by the DevTools protocol over a pair of pipes.
class Browser
  # Seconds for the browser to start, and for an answer.
  LIMIT = 50
  PROGRAMS = %w[chromium-headless-shell chromium chromium-browser google-chrome].freeze
  ARGUMENTS = %w[
    --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --no-first-run --hide-scrollbars
    --remote-debugging-pipe
  ].freeze

  class Missing < StandardError; end
  class Failed < StandardError; end
  # The page has been left before it could answer.
  class Left < Failed; end

  # @return [String, nil]
  def self.program
    folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
    PROGRAMS.product(folders).map { |name, folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  # The folder where downloads arrive.
  attr_reader :folder

  def initialize(width: 1280, height: 900)
    program = self.class.program || raise(Missing)
    @folder = Dir.mktmpdir("browser")
    @events = []
    @id = 0
    start(program)
    target = call("Target.createTarget", url: "about:blank", width:, height:).fetch("targetId")
    @session = call("Target.attachToTarget", targetId: target, flatten: true).fetch("sessionId")
    %w[Page Network Log Runtime].each { |domain| call("#{domain}.enable") }
    call("Browser.setDownloadBehavior", behavior: "allow", downloadPath: @folder, eventsEnabled: true)
    size(width, height)
  end

  def size(width, height)
    call("Emulation.setDeviceMetricsOverride", width:, height:, deviceScaleFactor: 1, mobile: false)
  end

  # @param scheme [String] light or dark
  def color_scheme(scheme)
    call("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
  end

  # Runs a script in the next pages, before their own ones.
  # @return [String] an id for {without_script}
  def with_script(source) = call("Page.addScriptToEvaluateOnNewDocument", source:).fetch("identifier")

  def without_script(identifier) = call("Page.removeScriptToEvaluateOnNewDocument", identifier:)

  # Opens an address, and returns when the page has loaded.
  def visit(address)
    call("Page.navigate", url: address)
    wait_until("document.readyState === 'complete' && location.href !== 'about:blank'")
  end

  # @param script [String] an expression, or a promise of one
  # @return [Object] what JSON has of its value
  def evaluate(script)
    result = call("Runtime.evaluate", expression: script, awaitPromise: true, returnByValue: true, userGesture: true)
    raise Failed, result.fetch("exceptionDetails").to_s if result["exceptionDetails"]

    result.fetch("result")["value"]
  end

  # Waits until the expression is true in the page.
  #
  # @return [Object] its value then
  def wait_until(expression)
    look = "const look = () => { const value = (#{expression}); value ? done(value) : setTimeout(look, 20); }"
    evaluate("new Promise((done) => { #{look}; look(); })")
  rescue Left
    # The page that has looked is gone, as after a press on a link. The next one looks.
    retry
  rescue Timeout::Error
    raise Failed, "not so after #{LIMIT} s: #{expression}. The page: #{evaluate("document.body.innerText")[0, 2000]}"
  end

  # The text of what a selector finds first.
  def text(selector) = evaluate("document.querySelector(#{selector.to_json}).innerText")

  def click(selector) = evaluate("document.querySelector(#{selector.to_json}).click()")

  # Presses a key, such as Tab, Enter or a letter.
  def press(key, code = { "Tab" => 9, "Enter" => 13, "Escape" => 27, "/" => 191 }.fetch(key) { key.upcase.ord })
    text = key == "Enter" ? "\r" : key[/\A.\z/].to_s
    call("Input.dispatchKeyEvent", type: "keyDown", key:, code: key, windowsVirtualKeyCode: code, text:)
    call("Input.dispatchKeyEvent", type: "keyUp", key:, code: key, windowsVirtualKeyCode: code)
  end

  # @return [String] the path of the picture
  def screenshot(path, **clip)
    parameters = clip.empty? ? {} : { clip: { x: 0, y: 0, scale: 1, **clip } }
    File.binwrite(path, call("Page.captureScreenshot", parameters).fetch("data").unpack1("m"))
    path
  end

  # @return [Array<String>] the addresses that the page has asked for
  def requests = events("Network.requestWillBeSent").map { |event| event.dig("request", "url") }

  # @return [Array<String>] errors of scripts, and what the browser has refused
  def problems
    events("Log.entryAdded").map { |event| event.dig("entry", "text") } +
      events("Runtime.exceptionThrown").map { |event| event["exceptionDetails"].to_s }
  end

  # Forgets the requests and problems so far.
  def forget = @events.clear

  # Waits for an event for which the block returns true.
  def wait_for(name, &)
    Timeout.timeout(LIMIT) { take until events(name).any?(&) }
  end

  def stop
    # Debian's program is a shell script, which starts the browser.
    Process.kill(:KILL, -@process.pid) if @process.alive?
    @process.join
    [@input, @output].each(&:close)
    FileUtils.rm_rf(@folder)
  end

  private

  def start(program)
    commands, @input = IO.pipe
    @output, answers = IO.pipe
    # Ruby's pipes do not block, which the browser does not expect.
    [commands, answers].each { |pipe| pipe.nonblock = false }
    pid = spawn(program, *ARGUMENTS, "--user-data-dir=#{File.join(@folder, "profile")}",
                3 => commands, 4 => answers, %i[out err] => File::NULL, pgroup: true)
    @process = Process.detach(pid)
    [commands, answers].each(&:close)
  end

  def events(name) = @events.filter_map { |event| event["params"] if event["method"] == name }

  def call(method, parameters = {})
    @id += 1
    message = { id: @id, method:, params: parameters }
    message[:sessionId] = @session if @session && !method.match?(/\A(Browser|Target)\./)
    @input.write(message.to_json, "\0")
    Timeout.timeout(LIMIT) do
      answer = take until answer && answer["id"] == @id
      fail_with(method, answer.dig("error", "message")) if answer["error"]

      answer.fetch("result")
    end
  end

  def fail_with(method, message)
    raise message.match?(/navigated|context was destroyed/) ? Left : Failed, "#{method}: #{message}"
  end

  # Reads a message, and keeps events.
  def take
    line = @output.gets("\0") || raise(Failed, "the browser has ended")
    message = JSON.parse(line.chomp("\0"))
    @events << message if message["method"]
    message
  end
end
