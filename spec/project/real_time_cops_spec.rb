# frozen_string_literal: true

require "tempfile"

RSpec.describe "The cops against real time in examples" do
  include Libraries

  before(:context) do
    require "rubocop"
    require_relative "../cops/real_time"
  rescue LoadError
    skip_or_fail_without("rubocop")
  end

  # @return [Array<String>] the names of the cops that refuse the source
  def refused(source)
    names = %w[Sleep Limit Measure]
    cops = names.map { |name| RuboCop::Cop::RealTime.const_get(name).new(RuboCop::Config.new("AllCops" => {})) }
    parsed = RuboCop::ProcessedSource.new(source, RUBY_VERSION.to_f, "an_example_spec.rb")
    report = RuboCop::Cop::Commissioner.new(cops, [], raise_error: true).investigate(parsed)
    report.offenses.map { |offense| offense.cop_name.delete_prefix("RealTime/") }
  end

  {
    "a sleep that ends" => ["sleep(0.01)", "Sleep"],
    "a sleep of seconds" => ["sleep 1", "Sleep"],
    "a sleep in a program" => ["run(<<~RUBY)\n  Fiber.schedule { sleep(0.5) }\nRUBY", "Sleep"],
    "a sleep in a shell" => ['spawn("sleep 0.5; echo late")', "Sleep"],
    "a multiple of a short sleep" => ["sleep(0.001 * number)", "Sleep"],
    "a limit that may expire" => ["Timeout.timeout(2) { work }", "Limit"],
    "a limit of a wait" => ["queue.pop(timeout: 1)", "Limit"],
    "a limit of an example" => ['it("ends", timeout: 15) { work }', "Limit"],
    "a limit of a connection" => ["TCPSocket.new(host, port, connect_timeout: 0.4)", "Limit"],
    "a wait for a thread" => ["thread.join(10)", "Limit"],
    "a greatest duration" => ["expect(seconds { work }).to be < 0.5", "Measure"],
    "a range of durations" => ["expect(took).to be_between(0.01, 0.5)", "Measure"],
    "a count per time" => ["count / (Clock.now - began)", "Measure"]
  }.each do |what, (source, cop)|
    it "refuse #{what}" do
      expect(refused(source)).to eq([cop])
    end
  end

  {
    "a yield" => "sleep(0)",
    "a sleep that does not end" => "sleep && sleep(60)",
    "a sleep of any length" => "sleep(a_moment)",
    "a look for an event now and then" => "sleep(0.001) until done",
    "a least time" => "sleep(0.05) # at least",
    "the virtual clock" => "virtually { sleep(1) && Timeout.timeout(2) { work } }",
    "a helper with the virtual clock" => "def run(&) = virtually(&)\nrun { sleep(1) }",
    "a program with the virtual clock" => "run(<<~RUBY)\n  Heddle::Testing.run(clock: :virtual) { sleep 1 }\nRUBY",
    "what is timed" => 'it("is late", :timed) { expect(seconds { sleep(1) }).to be < control }',
    "a limit that expires" => "Timeout.timeout(0.01) { sleep }",
    "a limit that does not expire" => "queue.pop(timeout: 60)",
    "a least duration" => "expect(seconds { work }).to be >= 0.02",
    "a comment" => "# sleep(1)\nwork"
  }.each do |what, source|
    it "accept #{what}" do
      expect(refused(source)).to eq([])
    end
  end
end
