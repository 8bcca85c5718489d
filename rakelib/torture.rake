# frozen_string_literal: true

# Runs Ruby's own tests inside fibers; see verification/torture/README.md.
module TortureRuns
  MODES = %w[waiting preempted].freeze

  module_function

  # @return [Boolean] whether all results are those of plain Ruby
  def same_as_plain?
    require_relative "../verification/torture/runner"

    tree = ENV.fetch("RUBY_SRC") { abort "RUBY_SRC must name a Ruby source tree: rake torture RUBY_SRC=/path/to/ruby" }
    modes.map { |mode| Torture::Runner.new(tree, mode:, backends:, **choice).run }.all?
  end

  def modes = ENV["MODE"] ? [ENV["MODE"]] : MODES

  # The same as for the specs: without io_uring where the kernel refuses it.
  def backends = ENV["BACKEND"] ? [ENV["BACKEND"]] : Specs.backends

  def choice
    {
      files: ENV.fetch("FILES", "").split(","),
      listed: ENV.key?("LISTED"),
      jobs: ENV["JOBS"]&.to_i,
      limit: ENV["LIMIT"]&.to_f
    }.compact
  end
end

desc "Run Ruby's own tests in fibers (RUBY_SRC=a Ruby source tree MODE=waiting|preempted FILES=… BACKEND=… LISTED=1)"
task torture: :compile do
  abort "Ruby's own tests differ inside Heddle" unless TortureRuns.same_as_plain?
end
