# frozen_string_literal: true

# Runs stress/preemption.rb, which says what it does and what else the environment can choose.
module StressRuns
  extend Rake::DSL

  BACKENDS = %w[io_uring poll].freeze

  module_function

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
