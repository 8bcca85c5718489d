# frozen_string_literal: true

# The user code of all benchmarks, one file each in workloads/ and latency/. Only children load these files (child.rb);
# the process that runs RSpec knows their names and parameters alone (catalogue.rb).
#
# A workload is a class: it takes its parameters as keywords, `measure(contestant)` does the work once or for a time,
# and returns a Hash of figures. `operations` and `expected` are its own sums; the benchmark fails if they differ.
module Workloads
  module_function

  def named(name)
    folder = %w[workloads latency].find { |each| File.exist?("#{__dir__}/#{each}/#{name}.rb") } or
      raise ArgumentError, "no workload #{name.inspect}"
    require_relative "#{folder}/#{name}"
    Object.const_get(name.split("_").map(&:capitalize).join)
  end
end
