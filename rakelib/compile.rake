# frozen_string_literal: true

require "rake/clean"
require "rbconfig"

# Where the extension is built for the Ruby that runs rake. Rubies don't share a directory: they would evict each
# other's builds.
module Build
  ROOT = File.expand_path("..", __dir__)
  ABI = RUBY_VERSION[/\d+\.\d+/]
  EXTCONF = "#{ROOT}/ext/heddle/extconf.rb".freeze
  CARGO_TARGET = "#{ROOT}/target/ruby-#{ABI}".freeze
  MAKE_DIR = "#{ROOT}/tmp/ruby-#{ABI}".freeze
  LIBRARY = "heddle.#{RbConfig::CONFIG["DLEXT"]}".freeze
  INSTALLED = "#{ROOT}/lib/heddle/#{ABI}/#{LIBRARY}".freeze

  # The crate rb-sys asks the Ruby named here what to link with.
  CARGO_ENV = { "RUBY" => RbConfig.ruby, "CARGO_TARGET_DIR" => CARGO_TARGET }.freeze
  MAKE_ENV = CARGO_ENV.merge(
    "RB_SYS_CARGO_TARGET_DIR" => CARGO_TARGET,
    "RB_SYS_CARGO_PROFILE" => "release",
    # The Makefile holds this path, too, but not the right one once the project has been moved.
    "RB_SYS_CARGO_MANIFEST_DIR" => File.dirname(EXTCONF)
  ).freeze
end

CLEAN.include("tmp", "pkg")
CLOBBER.include("target", "lib/heddle/[0-9]*.[0-9]*")

directory Build::MAKE_DIR

file "#{Build::MAKE_DIR}/Makefile" => [Build::MAKE_DIR, Build::EXTCONF, RbConfig.ruby] do
  chdir(Build::MAKE_DIR) { sh Build::MAKE_ENV, RbConfig.ruby, Build::EXTCONF }
end

desc "Build the extension for the Ruby that runs rake"
task compile: "#{Build::MAKE_DIR}/Makefile" do
  # Cargo alone knows what is out of date, so make is always asked.
  sh Build::MAKE_ENV, "make", "-C", Build::MAKE_DIR, "--no-print-directory"

  # Renamed into place: writing into a library that another process has loaded would crash it.
  mkdir_p File.dirname(Build::INSTALLED)
  staged = "#{Build::INSTALLED}.#{Process.pid}"
  cp "#{Build::MAKE_DIR}/#{Build::LIBRARY}", staged
  mv staged, Build::INSTALLED
end
