# frozen_string_literal: true

module Heddle
  # Raised by an adapter for a version of its library with which it was never tried.
  class UntriedVersionError < Error; end

  # The versions of libraries with which Heddle's adapters were tried. The adapters use private methods, which a library
  # may change in any release. With another version an adapter refuses to load. Otherwise it could fail in the middle of
  # a request, or silently do nothing.
  #
  # An adapter checks its library before it changes anything:
  #
  #     Heddle.const_get(:TriedVersions).check("sidekiq", Sidekiq::VERSION)
  #
  # @api private
  module TriedVersions
    # By the name of the gem. A range ends before the first release that may change what the adapter uses, and was not
    # tried.
    RANGES = {
      "activejob" => [">= 7.2", "< 7.3"],
      "activerecord" => [">= 7.2", "< 7.3"],
      "concurrent-ruby" => [">= 1.3", "< 1.4"],
      "connection_pool" => [">= 3.0", "< 3.1"],
      "puma" => [">= 6.6", "< 8.1"],
      "rails" => [">= 7.2", "< 7.3"],
      "sidekiq" => [">= 8.1", "< 8.2"]
    }.freeze
    # The environment variable that names the gems, with commas between them, whose version is not checked.
    VARIABLE = "HEDDLE_UNTRIED_VERSIONS"

    module_function

    # @param gem [String] a key of {RANGES}
    # @param version [String, Gem::Version] the version that is loaded
    # @return [void]
    # @raise [UntriedVersionError] if the adapter was never tried with it
    def check(gem, version)
      return if tried?(gem, version)

      raise UntriedVersionError,
            "Heddle's adapter for #{gem} uses private methods of it, and was tried with #{range(gem)} only, not with " \
            "#{version}: update heddle, or use such a version of #{gem}. To load the adapter all the same, set " \
            "#{VARIABLE}=#{gem}"
    end

    # @param gem [String] a key of {RANGES}
    # @param version [String, Gem::Version] the version that is loaded
    # @return [Boolean]
    def tried?(gem, version)
      # So that a prerelease counts as the release that it precedes.
      range(gem).satisfied_by?(Gem::Version.new(version).release) || allowed?(gem)
    end

    def range(gem) = Gem::Requirement.new(RANGES.fetch(gem))

    def allowed?(gem)
      ENV.fetch(VARIABLE, "").split(",").any? { |name| name.strip == gem }
    end
    private_class_method :range, :allowed?
  end
  private_constant :TriedVersions
end
