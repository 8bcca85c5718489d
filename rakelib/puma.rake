# frozen_string_literal: true

desc "Run Puma's own tests with its servers on Heddle (PUMA_SRC=a source tree of Puma, FILES=puma_server,…)"
task puma_tests: :compile do
  require "bundler"
  require_relative "../verification/puma/runner"

  tree = ENV.fetch("PUMA_SRC") { abort "PUMA_SRC must name a source tree: rake puma_tests PUMA_SRC=/path/to/puma" }
  choice = { files: ENV["FILES"]&.split(",") }.compact
  abort "Puma's own tests fail on Heddle" unless Torture::PumaTests.new(tree, **choice).pass?
end
