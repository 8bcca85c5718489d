# frozen_string_literal: true

# Runs specs with an extension whose threads stall, and whose files are not in memory, at random, as on a busy machine:
# see ext/core/src/disturbed.rs.
module DisturbedSpecs
  FILES = %w[lib ext spec verification examples docs README.md CHANGELOG.md .rspec].freeze
  SPECS = [*%w[hooks io libraries observability preemption scheduler structured testing].map { |name| "spec/#{name}" },
           "spec/project/documents_spec.rb"].freeze

  module_function

  def run
    copy = CopiedBuild.new("disturbed-#{Build::ABI}", flags: "--cfg heddle_disturbed", files: FILES)
    copy.make
    specs = ENV.fetch("SPEC", SPECS.join(" ")).split
    rounds = Integer(ENV.fetch("ROUNDS", "1"))
    failed = Specs.failing(Specs.backends) do |backend, output|
      environment = { "HEDDLE_BACKEND" => backend, "HEDDLE_DISTURBED" => "1" }
      (1..rounds).all? { copy.passes?(environment, Gem.bin_path("rspec-core", "rspec"), *specs, output:) }
    end
    abort "Specs failed with #{failed.join(" and ")}" if failed.any?
  end
end

desc "Run specs as on a busy machine, which shows those that are green by luck (SPEC='spec/a_spec.rb …' ROUNDS=20)"
task(:disturbed) { DisturbedSpecs.run }
