# frozen_string_literal: true

require "stringio"
require "tmpdir"

Ecosystem.library "minitest" do
  def works(_client)
    suite
    Minitest.seed = 1
    reporter = Minitest::SummaryReporter.new(StringIO.new, {})
    reporter.start
    # Its name in version 6, and before.
    Minitest.__send__(%i[run_all_suites __run].find { |name| Minitest.respond_to?(name, true) }, reporter, {})
    reporter.report
    [reporter.count, reporter.failures, reporter.errors, reporter.skips]
  end

  def suite
    Class.new(Minitest::Test) do
      define_method(:test_sleep) { assert sleep(0.01) }
      define_method(:test_failure) { assert_equal 3, Queue.new.tap { |queue| queue << 4 }.pop }
      define_method(:test_error) { raise IOError, "broken" }
      define_method(:test_skip) { skip "later" }
    end
  end
end

Ecosystem.library "rspec", requires: "rspec/core" do
  def works(_client)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "a_spec.rb"), <<~RUBY)
        RSpec.describe "a loom" do
          let(:queue) { Queue.new }
          it("waits") { expect(Thread.new { sleep(0.01) && 5 }.value).to eq 5 }
          it("fails") { expect(queue.push(4).pop).to eq 3 }
          it("doubles") { expect(double(weave: 7).weave).to eq 7 }
          it("is skipped") { skip "later" }
        end
      RUBY
      output = StringIO.new
      status = RSpec::Core::Runner.run([folder, "--no-color"], output, output)
      [status, output.string[/\d+ examples.*/]]
    end
  end
end
