# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"

module Torture
  # Runs Puma's own tests with every server on Heddle, and compares with the list of tests that are left out.
  class PumaTests
    FOLDER = __dir__
    LIB = File.expand_path("../../lib", FOLDER)
    # What servers do. The other files test Puma's command line, its parser, and the like, without a server.
    FILES = %w[
      cli fiber_local_application fiber_storage_application http10 http11 integration_cluster integration_pumactl
      integration_single integration_ssl integration_ssl_session launcher out_of_band_server persistent plugin
      puma_server puma_server_current puma_server_hijack puma_server_shutdown_debug puma_server_ssl rack_handler
      rack_server request_invalid_multiple request_single response_header unix_socket web_server
    ].freeze
    RESULT = /^(\w+#\w+) = [\d.]+ s = ([.EFS])$/
    # Seconds for one file.
    LIMIT = 600

    # @param tree [String] Puma's source tree
    def initialize(tree, files: FILES)
      @tree = tree
      @files = files.map { |name| "test/test_#{name}.rb" }.select { |file| File.exist?(File.join(tree, file)) }
      abort "#{tree} has none of Puma's tests" if @files.empty?
      @left_out = YAML.safe_load_file(File.join(FOLDER, "left_out.yml")).values.flatten
    end

    # @return [Boolean] whether all tests pass, except for those left out
    def pass?
      build_parser
      @files.map { |file| passes?(file) }.all?
    end

    private

    # Puma's HTTP parser is an extension, which its source tree holds as source.
    def build_parser
      target = File.join(@tree, "lib/puma/puma_http11.so")
      return if File.exist?(target)

      folder = File.join(@tree, "tmp/parser")
      FileUtils.mkdir_p(folder)
      [[RbConfig.ruby, File.join(@tree, "ext/puma_http11/extconf.rb")], ["make"]].each do |command|
        system(*command, chdir: folder, out: File::NULL, exception: true)
      end
      FileUtils.cp(Dir[File.join(folder, "**/puma_http11.so")].first, target)
    end

    def passes?(file)
      output = output_of(file)
      passed, failed, skipped = results_in(output)
      puts "#{file}: #{passed.size} passed, #{failed.size} failed, #{skipped.size} left out or skipped"
      complete = output.match?(/^\d+ runs, /)
      puts complete ? failed : ["did not end:", output]
      complete && failed.empty?
    end

    # @return [Array<Array<String>>] the tests that passed, failed, and were left out or skipped
    def results_in(output)
      tests = output.scan(RESULT).group_by { |test, result| left_out?(test) ? "S" : result.sub("E", "F") }
      tests.values_at(".", "F", "S").map { |group| group.to_a.map(&:first) }
    end

    # Minitest erases what it writes before a test's result.
    def output_of(file)
      command = ["timeout", "-s", "KILL", LIMIT.to_s, RbConfig.ruby, "-Ilib", "-Itest", file, "-v"]
      Open3.capture2e(environment, *command, chdir: @tree, unsetenv_others: true).first.delete("\b")
    end

    def left_out?(test)
      @left_out.include?(test) || @left_out.include?(test[/\A\w+/])
    end

    def environment
      Bundler.unbundled_env.merge("RUBYLIB" => "#{File.join(FOLDER, "shims")}:#{LIB}",
                                  "RUBYOPT" => "-r#{File.join(FOLDER, "on_heddle.rb")}",
                                  "TEST_CASE_TIMEOUT" => "60")
    end
  end
end
