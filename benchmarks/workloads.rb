# frozen_string_literal: true

# The code that is measured, one file per workload. Only the process of one measurement loads it (run/child.rb); the
# process that runs RSpec knows a workload's name and parameters alone (catalogue/).
#
# A workload is a class. It takes its parameters as keywords. `measure(contestant)` does the work, once or for some
# time, and returns a Hash of figures. `operations` and `expected` are the workload's own sums; the benchmark fails if
# they differ.
module Workloads
  FOLDERS = %w[throughput latency].map { |name| "#{__dir__}/workloads/#{name}" }.freeze

  module_function

  def named(name)
    folder = FOLDERS.find { |each| File.exist?("#{each}/#{name}.rb") } or
      raise ArgumentError, "no workload #{name.inspect} in #{FOLDERS.join(" or ")}"
    require "#{folder}/#{name}"
    Object.const_get(name.split("_").map(&:capitalize).join)
  end
end
