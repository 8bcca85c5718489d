# frozen_string_literal: true

# Installs a gem of Heddle into an empty GEM_HOME, and runs a program with it.
#
#   ruby bin/support/check_gem.rb pkg/heddle-0.1.0-x86_64-linux.gem
#   ruby bin/support/check_gem.rb --without-extension pkg/heddle-0.1.0.gem
#
# With --without-extension, the source gem is installed as on a system that Heddle does not support. That finds neither
# a compiler nor Rust, only `make`, and the program checks that Heddle steps aside.
#
# A platform gem is installed without any other gem, and with an empty PATH: without a compiler and Rust. A source gem
# finds both, and rb_sys among the installed gems. The program always runs with an empty PATH, in an empty folder, and
# without RUBYLIB and RUBYOPT, so that it finds Heddle in the GEM_HOME only. This script needs nothing but Ruby: it also
# runs in containers of other platforms.

require "rbconfig"
require "rubygems/package"
require "tmpdir"

# Installs a gem's file, and runs a program with it; aborts if one of them fails.
class GemCheck
  INSTALL = 'require "rubygems/gem_runner"; Gem::GemRunner.new.run(ARGV)'

  # Waits for a pipe, and preempts a fiber that computes until another one has slept.
  PROGRAM = <<~'RUBY'
    require "heddle"

    loaded = $LOADED_FEATURES.grep(%r{/heddle(/|\.)})
    foreign = loaded.reject { |file| file.start_with?(File.realpath(ENV.fetch("GEM_HOME"))) }
    abort "loaded from outside of the GEM_HOME: #{foreign.join(", ")}" if foreign.any?

    backend = line = awake = nil
    Heddle.run(preempt: :all) do
      backend = Fiber.scheduler.backend
      reader, writer = IO.pipe
      Fiber.schedule { line = reader.gets }
      Fiber.schedule { nil until awake }
      Fiber.schedule do
        sleep 0.01
        awake = true
        writer.puts "from another fiber"
      end
    end
    abort "the pipe brought #{line.inspect}" unless line == "from another fiber\n"

    library = loaded.grep(/\.(so|bundle)\z/).first.delete_prefix("#{File.realpath(ENV.fetch("GEM_HOME"))}/")
    puts "Heddle #{Heddle::VERSION} runs on Ruby #{RUBY_VERSION} with #{backend}: #{library}"
  RUBY

  # Finds no extension, and runs nothing.
  UNSUPPORTED_PROGRAM = <<~'RUBY'
    require "heddle"

    abort "Heddle.supported? is true" if Heddle.supported?
    begin
      Heddle.run { nil }
      abort "Heddle.run has returned"
    rescue Heddle::Unsupported => e
      puts "Heddle #{Heddle::VERSION} steps aside on Ruby #{RUBY_VERSION}: #{e.message}"
    end
  RUBY

  # Seconds.
  PROGRAM_LIMIT = 60

  # They would make Ruby load gems or files from elsewhere.
  RUBY_VARIABLES = /\A(RUBY|BUNDLE|GEM_)/

  # @param file [String]
  # @param extension [Boolean] whether to compile the extension of a source gem
  def initialize(file, extension: true)
    @file = File.expand_path(file)
    @extension = extension
    @source = Gem::Package.new(@file).spec.platform == Gem::Platform::RUBY
  end

  def run
    Dir.mktmpdir do |folder|
      @folder = File.realpath(folder)
      %w[gems empty].each { |name| Dir.mkdir(File.join(@folder, name)) }
      succeeds?(install_environment, "-e", INSTALL, "install", "--local", "--no-document", @file) ||
        abort("#{@file} cannot be installed")
      program = @extension ? PROGRAM : UNSUPPORTED_PROGRAM
      succeeds?(bare_environment, "-e", program, limit: PROGRAM_LIMIT) || abort("The program fails with #{@file}")
    end
  end

  private

  def gem_home = File.join(@folder, "gems")

  def empty_folder = File.join(@folder, "empty")

  def install_environment
    return bare_environment unless @source
    return { **bare_environment, "PATH" => folder_with_make, "HEDDLE_UNSUPPORTED" => "1" } unless @extension

    ENV.to_h.reject { |name, _| RUBY_VARIABLES.match?(name) }.merge(gem_environment)
  end

  def bare_environment = { "PATH" => empty_folder, "HOME" => empty_folder, **gem_environment }

  def folder_with_make
    folders = ENV.fetch("PATH").split(File::PATH_SEPARATOR)
    make = folders.map { |folder| File.join(folder, "make") }.find { |file| File.executable?(file) } || abort("no make")
    folder = File.join(@folder, "make")
    Dir.mkdir(folder)
    File.symlink(make, File.join(folder, "make"))
    folder
  end

  def gem_environment
    path = @source ? [gem_home, *Gem.path] : [gem_home]
    { "GEM_HOME" => gem_home, "GEM_PATH" => path.join(File::PATH_SEPARATOR) }
  end

  # Whether Ruby ends without an error; it is killed after the limit.
  def succeeds?(environment, *, limit: nil)
    options = { unsetenv_others: true, chdir: empty_folder }
    process = Process.detach(spawn(environment, RbConfig.ruby, *, options))
    unless process.join(limit)
      warn "still running after #{limit} s"
      Process.kill(:KILL, process.pid)
    end
    process.value.success?
  end
end

extension = ARGV.delete("--without-extension").nil?
abort "usage: ruby #{$PROGRAM_NAME} [--without-extension] GEM" unless ARGV.size == 1
GemCheck.new(ARGV.first, extension:).run
