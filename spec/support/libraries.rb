# frozen_string_literal: true

# Programs as a library's user writes them, in a Ruby of their own: the library and a scheduler, no more.
#
# An example is skipped where its library or its server is missing. In CI it fails instead, so that nothing goes
# unnoticed when an installation breaks.
module Libraries
  # The exit status of a program whose library isn't there.
  MISSING = 2

  # These have native parts. Debian, from which bin/test installs them, builds native parts for its default Ruby alone.
  NATIVE = %w[
    activerecord-with-sqlite3 async fiddle grpc mysql2 pg puma rails sidekiq sqlite3 stackprof typhoeus
  ].freeze
  DEBIAN_RUBY = "3.3"

  # What the program prints.
  def output_with(library, program, env = {})
    output, errors, status = run_ruby(<<~RUBY, env:)
      begin
        require "#{library}"
      rescue LoadError
        exit #{MISSING}
      end
      require "heddle"
      #{program}
    RUBY
    skip_or_fail_without(library) if status.exitstatus == MISSING
    expect([errors, status.success?]).to eq ["", true]
    output
  end

  # Skips the example, or fails it if CI should have the library or the server.
  def skip_or_fail_without(name)
    raise "#{name} is missing, and CI is set: install it, or unset CI to skip the example" if Libraries.required?(name)

    skip "#{name} is not installed for this Ruby"
  end

  def self.required?(name)
    return false if ENV.fetch("CI", "").empty?

    !NATIVE.include?(name) || RUBY_VERSION.start_with?("#{DEBIAN_RUBY}.")
  end
end
