# frozen_string_literal: true

# Programs as a library's user writes them, in a Ruby of their own: the library and a scheduler, no more.
#
# An example is skipped where its library or its server is missing. It fails instead if HEDDLE_REQUIRED names the
# library, or is `all`, so that a broken installation does not go unnoticed: CI names what it has installed.
module Libraries
  # The exit status of a program whose library isn't there. For the second of several it is one more.
  MISSING = 2

  # These have native parts, or are tried with one that has. Debian, from which bin/test installs them, builds native
  # parts for its default Ruby alone.
  NATIVE = %w[
    activerecord-with-sqlite3 async fiddle grpc mysql2 pg puma rack-timeout rails sentry-ruby
    sequel-with-sqlite3 sidekiq sqlite3 stackprof typhoeus
  ].freeze
  DEBIAN_RUBY = "3.3"
  # No package has these. Their examples run where RUBYLIB has a source tree.
  UNPACKAGED = %w[datadog].freeze

  # Like Processes#printed, for a program that needs a library, or several. A file whose examples all need the same one
  # names it by `let(:library)`.
  def printed(program, library: self.library, preamble: self.preamble, **)
    libraries = Array(library)
    loading = libraries.each_with_index.map { |name, index| <<~RUBY }
      begin
        require "#{name}"
      rescue LoadError
        exit #{MISSING + index}
      end
    RUBY
    super(program, preamble: "#{loading.join}require \"heddle\"\n#{preamble}", **) do |status|
      missing = libraries.each_index.find { |index| status.exitstatus == MISSING + index }
      skip_or_fail_without(libraries[missing]) if missing
    end
  end

  # Skips the example, or fails it if HEDDLE_REQUIRED has the library or the server.
  def skip_or_fail_without(name)
    raise "#{name} is missing, which HEDDLE_REQUIRED names: install it, or unset it" if Libraries.required?(name)

    skip "#{name} is not installed for this Ruby"
  end

  def self.required?(name)
    required = ENV.fetch("HEDDLE_REQUIRED", "").split
    return required.include?(name) unless required == ["all"]

    return false if UNPACKAGED.include?(name)

    !NATIVE.include?(name) || RUBY_VERSION.start_with?("#{DEBIAN_RUBY}.")
  end
end
