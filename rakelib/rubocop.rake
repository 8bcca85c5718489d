# frozen_string_literal: true

begin
  require "rubocop/rake_task"

  RuboCop::RakeTask.new
rescue LoadError
  desc "Run RuboCop"
  task(:rubocop) { abort "RuboCop is in the Gemfile only; this bundle is #{ENV.fetch("BUNDLE_GEMFILE", "none")}" }
end
