# frozen_string_literal: true

desc "Check OpenTelemetry's spans in fibers, requests and jobs (OPENTELEMETRY_SRC=a source tree of opentelemetry-ruby)"
task opentelemetry: :compile do
  require "bundler"

  tree = ENV.fetch("OPENTELEMETRY_SRC") { abort "OPENTELEMETRY_SRC must name a source tree of opentelemetry-ruby" }
  folders = %w[api sdk common registry semantic_conventions].map { |name| "#{File.expand_path(tree)}/#{name}/lib" }
  libraries = [File.expand_path("lib"), *folders].join(File::PATH_SEPARATOR)
  Bundler.with_unbundled_env { sh({ "RUBYLIB" => libraries }, RbConfig.ruby, "verification/opentelemetry/check.rb") }
end
