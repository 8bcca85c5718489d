# frozen_string_literal: true

desc "Lint the Ruby code"
task :rubocop do
  ruby Gem.bin_path("rubocop", "rubocop")
end
