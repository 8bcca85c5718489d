# frozen_string_literal: true

conformance = "verification/conformance"

desc "Run Ruby's own test/fiber with Heddle as its scheduler (RUBY_SRC=a Ruby source tree TESTS=part,… INTERFACE=4|5)"
task :conformance do
  # REFERENCE=1 runs the suite with its own scheduler, to distinguish Heddle's failures from those of the machine.
  Rake::Task["compile"].invoke unless ENV["REFERENCE"]
  require_relative "../#{conformance}/runner"

  source = ENV.fetch("RUBY_SRC") do
    abort "RUBY_SRC must name a Ruby source tree: rake conformance RUBY_SRC=/path/to/ruby"
  end
  runner = RubyTestFiber::Runner.new(
    source,
    names: ENV.fetch("TESTS", "").split(","),
    limit: Float(ENV.fetch("LIMIT", RubyTestFiber::Runner::LIMIT)),
    reference: ENV.key?("REFERENCE")
  )
  abort unless runner.run
end
