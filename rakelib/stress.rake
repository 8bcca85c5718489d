# frozen_string_literal: true

# Runs the programs in verification/stress/ and verification/soak/. Their headers explain what they do, and further
# choices by environment variables.
module StressRuns
  extend Rake::DSL

  BACKENDS = %w[io_uring poll].freeze

  module_function

  # STRESS_COMPILE=no uses the existing build.
  def compile
    Rake::Task["compile"].invoke unless ENV["STRESS_COMPILE"] == "no"
  end

  # The program runs every backend itself, unless HEDDLE_BACKEND names one.
  def run_faults
    compile
    sh RbConfig.ruby, "-Ilib", "verification/stress/faults.rb"
  end

  # Needs Puma and websocket-driver; with PostgreSQL's server and pg there are queries, too.
  def soak
    compile
    sh RbConfig.ruby, "-rbundler", "-Ilib", "verification/soak/soak.rb"
  end

  # The differential programs, which are deterministic. The stress programs use threads, which no schedule orders.
  def explore
    compile
    sh RbConfig.ruby, "-Ilib", "verification/differential/explored.rb"
  end

  # Heddle's own Ruby code: the operations of structured/, coordination/ and pools/ beside each other.
  def explore_pairs
    compile
    sh RbConfig.ruby, "-Ilib", "verification/structured/pairs.rb"
  end

  # HEDDLE_BACKEND restricts the run to one backend.
  def run
    compile
    backends = ENV["HEDDLE_BACKEND"] ? [ENV["HEDDLE_BACKEND"]] : BACKENDS
    backends.each do |backend|
      puts "backend: #{backend}"
      sh({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, "-Ilib", "verification/stress/preemption.rb")
    end
  end
end

desc "Preempt fibers at random places for a minute per backend (SEED=7 SECONDS=60 HEDDLE_BACKEND=poll)"
task(:stress) { StressRuns.run }

desc "Let a Puma with plugin :heddle serve clients of all kinds for two hours, and see what grows (MINUTES=120)"
task(:soak) { StressRuns.soak }

desc "Run the differential programs under explored schedules (SEEDS=200 SEED=1 SECONDS=100 HEDDLE_BACKEND=poll)"
task(:explored) { StressRuns.explore }

namespace :explored do
  desc "Explore pairs of operations of structured/, coordination/ and pools/ (RUNS=2000 SEEDS=100 HEDDLE_BACKEND=poll)"
  task(:pairs) { StressRuns.explore_pairs }
end

namespace :stress do
  desc "Let each system call of Heddle fail, by strace (CALLS=io_uring_enter,mmap HEDDLE_BACKEND=poll)"
  task(:faults) { StressRuns.run_faults }
end
