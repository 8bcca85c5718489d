# frozen_string_literal: true

# One measurement in a process of its own: `ruby child.rb REQUEST`, where REQUEST is JSON that names a contestant, a
# workload and the workload's parameters, and may name the `library` folder that Heddle is loaded from. Prints one line
# of JSON.
#
# A fresh Ruby for every measurement, because a process keeps what an earlier one left behind: loaded and patched code,
# inline caches, garbage. The process loads one contestant only, so none can disturb another.
#
# If the machine can't do a measurement, that is no error: the line then holds "left_out" and the reason.
require "json"
require_relative "../contestants"
require_relative "../workloads"
require_relative "left_out"

request = JSON.parse(ARGV.fetch(0), symbolize_names: true)
HeddleContestant.library = request[:library] if request.key?(:library)
contestant = Contestants.find(request.fetch(:contestant))

begin
  contestant.prepare
  workload = request[:workload]
  result =
    if workload
      Workloads.named(workload).new(**request.fetch(:parameters, {})).measure(contestant)
    else
      { version: contestant.version }
    end
rescue LoadError, NotInstalled => e
  result = { not_installed: e.message.lines.first.chomp }
rescue LeftOut => e
  result = { left_out: e.message }
end

puts JSON.generate(result)
