# frozen_string_literal: true

require "rspec/core/rake_task"

# The benchmarks are RSpec files with a configuration of their own; benchmarks/README.md explains the choices and the
# output.
module Benchmarks
  # BENCH_COMPILE=no measures the existing build.
  COMPILE = ENV["BENCH_COMPILE"] == "no" ? [] : [:compile]

  module_function

  def task(name, file)
    RSpec::Core::RakeTask.new(name => COMPILE) do |rspec|
      rspec.pattern = "benchmarks/#{file}_benchmark.rb"
      rspec.rspec_opts = "--options benchmarks/run/rspec.options"
      rspec.verbose = false
    end
  end
end

desc "Measure throughput beside other schedulers and threads (BENCH=switch,pipe ROUNDS=3 CONTESTANTS=heddle,async)"
Benchmarks.task(:bench, "throughput")

namespace :bench do
  desc "Measure latency beside CPU-bound fibers (BENCH=cpu_bound_4,echo_4 ROUNDS=3 CONTESTANTS=heddle,article)"
  Benchmarks.task(:latency, "latency")

  desc "Compare throughput with another built checkout, in alternation (BASE=path BENCH=switch,pipe ROUNDS=5)"
  Benchmarks.task(:compare, "comparison")

  { puma: "rack.ru", rails: "rails.ru" }.each do |name, app|
    desc "Compare Puma's threads, plugin :heddle and Async::HTTP by wrk, serving #{app} (ROUNDS=5 SECONDS=5)"
    task name => Benchmarks::COMPILE do
      ruby "benchmarks/applications/run.rb", app
    end
  end
end
