# frozen_string_literal: true

# Runs stress/preemption.rb, which says what it does and what else the environment can choose.
module StressRuns
  extend Rake::DSL

  BACKENDS = %w[io_uring poll].freeze

  module_function

  # What the kernel refuses it refuses on every backend in one run, unless HEDDLE_BACKEND names one.
  def run_faults
    Rake::Task["compile"].invoke unless ENV["STRESS_COMPILE"] == "no"
    sh RbConfig.ruby, "-Ilib", "stress/faults.rb"
  end

  # HEDDLE_BACKEND runs it on that backend only. STRESS_COMPILE=no runs the build that is there.
  def run
    Rake::Task["compile"].invoke unless ENV["STRESS_COMPILE"] == "no"
    backends = ENV["HEDDLE_BACKEND"] ? [ENV["HEDDLE_BACKEND"]] : BACKENDS
    backends.each do |backend|
      puts "backend: #{backend}"
      sh({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, "-Ilib", "stress/preemption.rb")
    end
  end
end

desc "Preempt everything at random for a minute per backend (SEED=7 SECONDS=60 HEDDLE_BACKEND=poll)"
task(:stress) { StressRuns.run }

namespace :stress do
  desc "Have the kernel refuse each call that Heddle makes, by strace (CALLS=io_uring_enter,mmap HEDDLE_BACKEND=poll)"
  task(:faults) { StressRuns.run_faults }
end
