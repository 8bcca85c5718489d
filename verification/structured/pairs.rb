# frozen_string_literal: true

# Heddle's own Ruby code under explored schedules: each public operation beside each other one of the same object, also
# while the fiber that performs it is stopped, runs into a time limit, or is killed; and the ends of parents and
# children. The points of the schedules are in lib/heddle/structured, coordination and pools. Of each verb of a parent
# beside each verb of its child ('families') all schedules with at most two preemptions are tried, whatever RUNS is.
#
#   ruby -Ilib verification/structured/pairs.rb [Barrier …]     all subjects by default
#
# RUNS=2000 is how many schedules of each case are tried exhaustively, SEEDS=100 how many by seed after that.

require "etc"
require "heddle"
require "heddle/testing"
require_relative "support/families"
require_relative "support/subjects"

runs = Integer(ENV.fetch("RUNS", "2000"), 10)
seeds = Integer(ENV.fetch("SEEDS", "100"), 10)
cases = (Families.cases + Subjects.cases).select { |each| ARGV.empty? || ARGV.include?(each.subject) }
abort "no subject has one of these names: #{ARGV.join(", ")}" if cases.empty?

shares = cases.group_by.with_index { |_, index| index % Etc.nprocessors }.values.map do |share|
  fork { exit!(share.map { |each| each.explore(runs, seeds) }.all?) }
end
succeeded = shares.map { |pid| Process.wait2(pid).last.success? }.all?
puts "#{cases.size} cases of #{cases.map(&:subject).uniq.join(", ")}: #{succeeded ? "as expected" : "see above"}"
exit succeeded
