# frozen_string_literal: true

# Runs benchmarks/ by RSpec with a configuration of their own; benchmarks/README.md tells how to choose and to read.
module Benchmarks
  extend Rake::DSL

  module_function

  # BENCH_COMPILE=no measures the build that is there.
  def run(name)
    Rake::Task["compile"].invoke unless ENV["BENCH_COMPILE"] == "no"
    arguments = ["--options", "benchmarks/rspec.options", "benchmarks/#{name}_benchmark.rb"]
    sh RbConfig.ruby, Gem.bin_path("rspec-core", "rspec"), *arguments
  end
end

desc "Measure throughput beside Async, threads and bare limits (BENCH=switch,pipe ROUNDS=3 CONTESTANTS=heddle,async)"
task(:bench) { Benchmarks.run("throughput") }

namespace :bench do
  desc "Measure latency beside fibers that compute (BENCH=hogs_4,echo_4 ROUNDS=3 CONTESTANTS=heddle,article)"
  task(:latency) { Benchmarks.run("latency") }
end
