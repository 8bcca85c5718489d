# frozen_string_literal: true

require "rspec/expectations"

# RSpec's configuration for the benchmarks, instead of the specs' (rspec.options). Examples run in the order in which
# they are defined, since that is the order of alternation. The runner limits their time.
module Reporting
  # Skips the example, with the reason, if this machine can't do the measurement.
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

# Whether a measurement may be reported: it did all of its operations, and all of its fibers ended.
RSpec::Matchers.define :be_sound do
  match do |result|
    result.key?(:operations) && result[:operations] == result[:expected] &&
      (result[:ended].nil? || result[:ended] == result[:fibers])
  end

  failure_message do |result|
    result[:failed] || result[:not_installed] ||
      ["expected #{result[:expected]} operations, got #{result[:operations]}",
       ("#{result[:ended]} of #{result[:fibers]} fibers ended" if result[:ended])].compact.join("; ")
  end
end

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.fail_if_no_examples = true
  config.include Reporting
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
end
