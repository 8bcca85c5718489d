# frozen_string_literal: true

# Runs the tests of one file of Ruby's test suite in this process:
#
#   ruby child.rb PLAN
#
# PLAN is a file with a marshalled Hash, the attributes of Torture::Plan, and `events`, the file that gets a line per
# event. This process doesn't load JSON and YAML, as they are tested, too.

plan = Marshal.load(File.binread(ARGV.shift)) # rubocop:disable Security/MarshalLoad -- from the process that started this
ARGV.clear

# Otherwise `fork` writes the buffer, and the fiber that forks waits for that.
$stdout.sync = true

require File.join(plan[:tree], "tool/test/init")
require "core_assertions"
require_relative "child_process"
require_relative "child/around"
require_relative "child/companion_fibers"
require_relative "child/events"
require_relative "child/modules"

if plan[:around] == :heddle
  $LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
  require "heddle"
end

events = Events.new(plan[:events])
chosen = ->(test) { (plan[:only].nil? || plan[:only].include?(test)) && !plan[:except].include?(test) }
runner = Test::Unit::AutoRunner::Runner

Test::Unit::TestCase.prepend(Modules.for_test_case(events, Around.for(plan)))
LeakChecker.prepend(Modules.for_leak_checker(events))
runner.prepend(Modules.for_runner(events, chosen))
Torture::ChildProcess.answer

folder = File.join(plan[:tree], "test")
Test::Unit::AutoRunner.run(true, folder, ["--test-order=alpha", File.join(plan[:tree], plan[:file])])
# The events contain the failed tests. The status shows whether the process ended normally.
exit
