# frozen_string_literal: true

# A copy of the project, with an extension that is compiled in another way, so that it does not replace the normal one.
class CopiedBuild
  include Rake::FileUtilsExt

  # Where the copy is.
  attr_reader :folder

  # @param name [String]
  # @param flags [String] of rustc
  # @param files [Array<String>] which files and folders the copy has
  # @param target [String, nil] with a nightly Rust, for this target
  def initialize(name, flags:, files:, target: nil)
    @folder = File.join(Build::ROOT, "tmp", name)
    @files = files
    @built = File.join("target", name)
    @flags = "-Copt-level=1 #{flags}"
    @target = target
  end

  def make
    rm_rf folder
    mkdir_p folder
    @files.each { |path| cp_r path, "#{folder}/#{path}" if mkdir_p(File.dirname("#{folder}/#{path}")) }
    mkdir_p "#{folder}/lib/heddle/#{Build::ABI}"
    cp build, "#{folder}/lib/heddle/#{Build::ABI}/#{Build::LIBRARY}"
  end

  # @param environment [Hash]
  # @param arguments [Array<String>] of Ruby
  # @param output [IO]
  # @return [Boolean]
  def passes?(environment, *arguments, output:)
    sh(environment, RbConfig.ruby, "-Ilib", *arguments, chdir: folder, %i[out err] => output) { |passed, _| passed }
  end

  private

  # @return [String] the library
  def build
    environment = { "RUBY" => RbConfig.ruby, "CARGO_TARGET_DIR" => @built, "RUSTFLAGS" => @flags }
    nightly, target = @target ? [["+nightly"], ["--target", @target]] : [[], []]
    sh environment, "cargo", *nightly, "build", *target, "--package", "heddle"
    File.join(@built, *@target, "debug/libheddle.so")
  end
end
