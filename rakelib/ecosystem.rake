# frozen_string_literal: true

desc "Run libraries against real servers, and write docs/compatibility.md (LIBRARY=pg,redis prints only these)"
task :ecosystem do
  require "bundler"
  require_relative "../ecosystem/run"

  $stdout.sync = true
  backends = Specs.backends
  contestants = (Ecosystem::Tasks::CONTESTANTS - ["threads"]).select { |name| backends.include?(name[/\w+/]) }
  chosen = ENV.fetch("LIBRARY", "").split(",")
  # The libraries are not in this process's bundle.
  passed = Bundler.with_unbundled_env { Ecosystem::Run.new(chosen:, contestants:).run }
  abort "Some libraries are worse in fibers than on threads" unless passed
end
