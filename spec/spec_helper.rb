# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "heddle"

# Without buffers no output is lost or printed twice when an example forks, hangs or crashes.
[$stdout, $stderr].each { |io| io.sync = true }

Dir[File.join(__dir__, "support", "*.rb")].each { |file| require file }

Watchdog::Report.finish_on("QUIT")

# RSpec loads a matcher when an example first uses it. Within a scheduler that may wait for the file, so that other
# fibers run in between: what an example does would depend on the examples before it, and on the page cache.
RSpec::Matchers::BuiltIn.constants.each { |name| RSpec::Matchers::BuiltIn.const_get(name) }

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.fail_if_no_examples = true
  config.order = :random
  backend = ENV.fetch("HEDDLE_BACKEND", "auto")
  config.example_status_persistence_file_path = "tmp/rspec_status/#{RUBY_VERSION}-#{backend}"
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
  config.mock_with(:rspec) { |mocks| mocks.verify_partial_doubles = true }
  config.backtrace_exclusion_patterns << %r{/spec/spec_helper\.rb} << %r{/spec/support/}
  Kernel.srand config.seed

  # Asked for each example when all files have been loaded.
  config.filter_run_excluding(not_taken: ->(_, metadata) { !Selection.takes?(metadata) })
  config.define_derived_metadata { |metadata| metadata[:not_taken] = true }

  helpers = [Accepting, Backend, CapturedStderr, Computing, Outcomes, Pipes, Processes, Scheduling, Swallowing,
             Terminating]
  helpers.each { |helper| config.include(helper) }

  config.before(:example, :least_length) do
    skip "from version 4 of the interface on, IO::Buffer#read and #write transfer once" unless HookInterface::WAITS
  end
  config.before(gc: :compact) { skip "this Ruby can't compact here" unless Collecting.compacts? }

  config.around(:example, :timed) { |example| Timed.judge(example) }

  # The watchdog is outermost, so that its time limit includes the other hooks.
  config.around do |example|
    limit = example.metadata.fetch(:timeout, Watchdog::LIMIT)
    Watchdog.guard(limit, example.location) do
      Collecting.during(example.metadata[:gc]) do
        Tidiness.check(example.location) { example.run }
      end
    end
  end
end
