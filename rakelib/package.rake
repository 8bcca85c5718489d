# frozen_string_literal: true

require "rubygems/package"

# Builds gems from this checkout, and checks them as a user gets them. Gems for other platforms are cross-built, see
# rakelib/compile.rake and docs/internals/releasing.md.
module Packages
  extend Rake::FileUtilsExt

  FOLDER = "pkg"
  # What compiles the extension. A platform gem contains the compiled extension instead.
  SOURCES = %r{\A(ext/|Cargo\.)}
  CHECK = "bin/support/check_gem.rb"
  # Compiles in half of the time: the check is about what the gem contains.
  QUICK_BUILD = {
    "CARGO_PROFILE_RELEASE_OPT_LEVEL" => "0",
    "CARGO_PROFILE_RELEASE_LTO" => "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16",
    "CARGO_PROFILE_RELEASE_DEBUG" => "false"
  }.freeze

  module_function

  def source = build(specification)

  # A gem with every build of the extension that `rake compile` has made here.
  def platform
    libraries = Dir["lib/heddle/*.*/#{Build::LIBRARY}"]
    abort "There is no lib/heddle/<version>/#{Build::LIBRARY}; run rake compile, with each Ruby" if libraries.empty?
    gem = specification
    gem.platform = Gem::Platform.local
    gem.required_ruby_version = rubies(libraries)
    gem.extensions = []
    gem.files = gem.files.grep_v(SOURCES) + libraries
    gem.dependencies.reject! { |dependency| dependency.name == "rb_sys" }
    build(gem)
  end

  # The same as for cross-built gems.
  def rubies(libraries)
    oldest, newest = libraries.map { |library| Gem::Version.new(library[%r{heddle/(\d+\.\d+)/}, 1]) }.minmax
    [">= #{oldest}", "< #{newest.to_s.succ}.dev"]
  end

  def specification = Gem::Specification.load("scheduler.gemspec").dup

  def build(gem)
    mkdir_p FOLDER
    file = File.join(FOLDER, gem.file_name)
    Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(gem, false, true, file) }
    file
  end

  def check(gem, *options, environment: {}) = sh(environment, RbConfig.ruby, CHECK, *options, gem)
end

namespace :package do
  desc "Build the source gem into pkg/"
  task(:source) { puts Packages.source }

  desc "Build a gem for this platform into pkg/, with each Ruby's build of the extension in lib/heddle"
  task(:platform) { puts Packages.platform }

  desc "Install the platform gem (or GEM=pkg/a.gem) alone and without Rust, and run a program with it on this Ruby"
  task(:check) { Packages.check(ENV.fetch("GEM") { Packages.platform }) }

  desc "Install the source gem, which compiles it, and run a program with it on this Ruby"
  task(:check_source) { Packages.check(Packages.source, environment: Packages::QUICK_BUILD) }

  desc "Install the source gem as on a system without its extension, where it steps aside"
  task(:check_without_extension) { Packages.check(Packages.source, "--without-extension") }
end
