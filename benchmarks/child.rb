# frozen_string_literal: true

# One measurement in a process of its own: `ruby child.rb REQUEST`, where REQUEST is JSON that names a contestant, a
# workload and the workload's parameters. Prints one line of JSON.
#
# A fresh Ruby for every measurement, because a process remembers: what one contestant has loaded, allocated,
# monkey-patched, compiled into inline caches or left to the garbage collector would be measured with the next. The
# process loads one contestant only, so none can disturb another by being there.
#
# What the machine doesn't allow is not an error: the line then holds "left_out" and the reason.
require "json"
require_relative "support/contestants"
require_relative "support/left_out"
require_relative "workloads"

request = JSON.parse(ARGV.fetch(0), symbolize_names: true)
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
