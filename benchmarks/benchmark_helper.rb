# frozen_string_literal: true

require "rspec/expectations"

# The benchmarks' own RSpec configuration; the specs' doesn't apply here (rspec.options). Examples run in the order in
# which they are written, since that is the order of alternation, and there is no time limit here but the runner's.
module Reporting
  # What can't be done on this machine is skipped with the reason.
  def skip_if_left_out(result)
    skip(result[:left_out]) if result.key?(:left_out)
    result
  end

  def report(session, page)
    table = Table.new(session.results).to_s
    paths = session.write(page.new(session).to_s)
    puts "", table, "", *paths
  end
end

# Whether a measurement may be told: it did all that it was to do.
RSpec::Matchers.define :be_sound do
  match do |result|
    !result.key?(:failed) && result[:operations] == result[:expected] &&
      (result[:ended].nil? || result[:ended] == result[:fibers])
  end

  failure_message do |result|
    result[:failed] || "#{result[:operations]} operations were done, #{result[:expected]} were to be done"
  end
end

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.fail_if_no_examples = true
  config.include Reporting
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
end
