# frozen_string_literal: true

desc "Run the tests of Async's gems on Async's scheduler and on Heddle's (ASYNC_SRC=source trees, separated by " \
     "spaces or colons, FILES=test/async/task.rb,…)"
task async_tests: :compile do
  require "bundler"
  require_relative "../verification/async/runner"

  trees = ENV.fetch("ASYNC_SRC", "").split(/[\s:]+/)
  abort "ASYNC_SRC must name source trees: rake async_tests ASYNC_SRC=/path/to/async:/path/to/io-stream" if trees.empty?
  choice = { files: ENV["FILES"]&.split(",") }.compact
  # Each tree runs, also after one that differs.
  same = trees.map { |tree| Torture::AsyncTests.new(tree, **choice).pass? }
  abort "Async's own tests differ on Heddle" unless same.all?
end

desc "Serve requests by Falcon, and perform jobs by Solid Queue's fiber workers, on Heddle (FALCON_SRC=source tree, " \
     "SOLID_QUEUE_SRC=source tree)"
task falcon: :compile do
  sources = %w[FALCON_SRC SOLID_QUEUE_SRC]
  abort "#{sources.join(" or ")} must name a source tree" unless sources.any? { |name| Dir.exist?(ENV.fetch(name, "")) }
  failing = Specs.failing(Specs.backends) do |backend, output|
    system({ "HEDDLE_BACKEND" => backend }, RbConfig.ruby, "-Ilib", "-S", "rspec", "verification/async", out: output)
  end
  abort "Falcon or Solid Queue differs on Heddle: #{failing.join(", ")}" if failing.any?
end
