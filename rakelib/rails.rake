# frozen_string_literal: true

desc "Run the specs of heddle/rails, and Rails' own tests, in fibers (RAILS_SRC=a source tree of Rails, " \
     "COMPONENTS=activesupport,…, DATABASE=postgresql, SOLID_SRC=a folder with solid_queue, solid_cache, solid_cable)"
task rails: :compile do
  require "bundler"
  require_relative "../verification/rails/runner"

  tree = ENV.fetch("RAILS_SRC") { abort "RAILS_SRC must name a source tree: rake rails RAILS_SRC=/path/to/rails" }
  choice = { components: ENV["COMPONENTS"]&.split(","), database: ENV.fetch("DATABASE", nil) }.compact
  abort "Rails differs on Heddle" unless Torture::RailsTests.new(tree, **choice).pass?
end
