# frozen_string_literal: true

# Libraries against real servers: see verification/ecosystem/README.md.
module EcosystemTask
  module_function

  # @param writes [Boolean] whether to write the page, if all libraries are run
  def run(writes:)
    require "bundler"
    require_relative "../verification/ecosystem/run"

    $stdout.sync = true
    backends = Specs.backends
    contestants = (Ecosystem::Tasks::CONTESTANTS - ["threads"]).select { |name| backends.include?(name[/\w+/]) }
    chosen = ENV.fetch("LIBRARY", "").split(",")
    # The libraries are not in this process's bundle.
    passed = Bundler.with_unbundled_env { Ecosystem::Run.new(chosen:, contestants:, writes:).run }
    abort "Some libraries are worse in fibers than on threads, or could not be measured" unless passed
  end
end

desc "Run libraries against real servers, and write the table of docs/libraries.md (LIBRARY=pg,redis prints only these)"
task(:ecosystem) { EcosystemTask.run(writes: true) }

namespace :ecosystem do
  # A part of bin/test --all, which must not fail because the machine is busy.
  desc "Run libraries against real servers without judging times, and print the table (LIBRARY=pg,redis)"
  task(:check) { EcosystemTask.run(writes: false) }
end
