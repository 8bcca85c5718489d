# frozen_string_literal: true

require "rbconfig"

module Heddle # :nodoc:
  # The ancestor of the errors that only Heddle raises, but for {TimeoutError}, which is a Timeout::Error.
  class Error < StandardError; end

  # Raised by what needs Heddle's extension, where {supported?} is false. The message says why there is none, and what
  # would be right.
  class Unsupported < Error; end

  # @return [Boolean] whether this system and this Ruby have Heddle's extension, which needs Linux and CRuby. Where they
  #   have none, `require "heddle"` succeeds, the adapters leave Puma, Rails, Active Job and Sidekiq on their threads,
  #   and what starts a scheduler raises {Unsupported}. The environment variable `HEDDLE_UNSUPPORTED=1` pretends that.
  # @example A Gemfile's program that runs on laptops, too
  #   Heddle.supported? ? Heddle.run { serve } : serve
  def self.supported? = Extension.missing.nil?

  # Loads the extension, or knows why there is none.
  module Extension
    class << self
      # @return [String, nil] why there is no extension
      attr_reader :missing

      # @return [void]
      def load
        @missing = reason || (require_build ? nil : "was installed without an extension for Ruby #{RUBY_VERSION}")
      end

      # @param name [String] what was called
      # @return [Unsupported]
      def error(name)
        Unsupported.new("#{name}: Heddle #{@missing}. It runs in a Linux container: #{container}. " \
                        "Heddle.supported? tells whether it can run")
      end

      # Says on `$stderr` what an adapter leaves as it is.
      #
      # @param consequence [String]
      # @return [void]
      def step_aside(consequence) = Kernel.warn("Heddle: #{consequence}, because Heddle #{@missing}")

      private

      # Not constants: a signal may end the loading of this file, which is loaded again then.
      def container = 'docker run --rm -it -v "$PWD":/app -w /app ruby:3.4 bash'

      def folder = File.expand_path("../heddle", __dir__)

      def reason
        system = RbConfig::CONFIG["target_os"]
        if !ENV.fetch("HEDDLE_UNSUPPORTED", "").empty?
          "is switched off by HEDDLE_UNSUPPORTED"
        elsif !system.include?("linux")
          "needs Linux, and this is #{system}"
        elsif RUBY_ENGINE != "ruby"
          "needs CRuby, and this is #{RUBY_ENGINE}"
        end
      end

      # A source tree and a platform gem hold one build of the extension per Ruby. A gem that was compiled at its
      # installation holds only the build for that Ruby.
      #
      # @return [Boolean] false if there is no build; one that cannot be loaded raises LoadError
      def require_build
        build = File.join(folder, RUBY_VERSION[/\d+\.\d+/], "heddle.#{RbConfig::CONFIG["DLEXT"]}")
        require File.exist?(build) ? build : "heddle/heddle"
        true
      rescue LoadError => e
        raise unless e.path == "heddle/heddle"

        false
      end
    end
  end
  private_constant :Extension

  Extension.load
end
