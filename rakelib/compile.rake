# frozen_string_literal: true

require "rb_sys/extensiontask"

# Where the extension is built for the Ruby that runs rake. Each Ruby has a target directory of its own: Rubies that
# shared one would evict each other's builds.
module Build
  ROOT = File.expand_path("..", __dir__)
  ABI = RUBY_VERSION[/\d+\.\d+/]
  CARGO_TARGET = "#{ROOT}/target/ruby-#{ABI}".freeze
  LIBRARY = "heddle.#{RbConfig::CONFIG["DLEXT"]}".freeze
  STAGED = "tmp/ruby-#{ABI}".freeze
  INSTALLED = "lib/heddle/#{ABI}".freeze

  # The crate rb-sys asks the Ruby named here what to link with.
  CARGO_ENV = { "RUBY" => RbConfig.ruby, "CARGO_TARGET_DIR" => CARGO_TARGET }.freeze

  # Without line tables the extension has a fifth of its size, which counts in a gem with one for each Ruby.
  CROSS_ENV = { "CARGO_PROFILE_RELEASE_DEBUG" => "false" }.freeze

  # rb-sys-dock names the platform here, in a container that has its compilers and Rubies.
  CROSS = ENV.key?("RUBY_TARGET")

  module_function

  # Two builds beside each other would take the staged library from each other: the second waits for the first.
  def lock
    FileUtils.mkdir_p(File.dirname(STAGED))
    FileUtils.touch("#{STAGED}.lock")
    @lock ||= File.new("#{STAGED}.lock").tap { |file| file.flock(File::LOCK_EX) }
  end

  def unlock = @lock.close
end

if Build::CROSS
  # `rake native:PLATFORM gem` makes one gem with lib/heddle/3.3/heddle.so, lib/heddle/3.4/heddle.so and so on.
  RbSys::ExtensionTask.new("heddle", Gem::Specification.load("scheduler.gemspec")) do |extension|
    extension.lib_dir = "lib/heddle"
    # Only for the platform that is named, not also for the container's own.
    extension.no_native = true
  end

  task("rb_sys:env:default") { ENV.update(Build::CROSS_ENV) }
else
  desc "Build the extension for the Ruby that runs rake"
  task :compile do
    # Renamed into place: overwriting a library that another process has loaded would crash that process.
    mkdir_p Build::INSTALLED
    mv "#{Build::STAGED}/#{Build::LIBRARY}", "#{Build::INSTALLED}/#{Build::LIBRARY}"
    Build.unlock
  end

  RbSys::ExtensionTask.new("heddle") { |extension| extension.lib_dir = Build::STAGED }

  # ExtensionTask runs this task before every build. It also makes the Makefile out of date each time, so that Cargo,
  # which alone knows what changed in the workspace, is always asked.
  task("rb_sys:env:default") do
    Build.lock
    ENV.update(Build::CARGO_ENV.merge("RB_SYS_CARGO_TARGET_DIR" => Build::CARGO_TARGET))
  end
end

# `rake clean` keeps Cargo's builds.
CLEAN.exclude("#{Build::ROOT}/target")
CLEAN.include("tmp", "pkg")
CLOBBER.include("target", "lib/heddle/[0-9]*.[0-9]*")
