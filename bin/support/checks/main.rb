# frozen_string_literal: true

# Runs the parts of bin/test, which starts this program after setting the machine up:
#
#   ruby bin/support/checks/main.rb (quick|all) SEED SECONDS RUBY… [--left-out NAME REASON]…
#
# SECONDS is what the setup took.

require "tmpdir"
require_relative "plan"
require_relative "run"

$stdout.sync = true

kind, seed, setup, *rest = ARGV
rubies, *left_out = rest.slice_before("--left-out").to_a
versions = rubies.to_h { |ruby| [IO.popen([ruby, "-e", "print RUBY_VERSION"], &:read), ruby] }
left_out = left_out.to_h { |_, name, reason| [name, reason] }

plan = Checks::Plan.new(versions, all: kind == "all", seed: Integer(seed), left_out:)
abort "bin/test: the gems of #{Checks::Plan::SPECS_GEMFILE} are installed for no Ruby" if plan.rubies.empty?
started = Process.clock_gettime(Process::CLOCK_MONOTONIC) - Float(setup)

# What the parts leave in the folder for temporary files, mostly of children that they have killed, goes with it.
exit(Dir.mktmpdir("heddle-test") do |folder|
  # Servers do not run as root.
  File.chmod(0o1777, folder)
  ENV["TMPDIR"] = folder
  Checks::Run.new(plan, started:).run
end)
