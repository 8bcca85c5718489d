# frozen_string_literal: true

require "rbconfig"

target = RbConfig::CONFIG["target_os"]
reason =
  if !ENV.fetch("HEDDLE_UNSUPPORTED", "").empty?
    "HEDDLE_UNSUPPORTED is set"
  elsif !target.include?("linux")
    "it needs Linux, for epoll, io_uring and its tickers, not #{target}"
  elsif RUBY_ENGINE != "ruby"
    "it needs CRuby, not #{RUBY_ENGINE}"
  end

if reason
  puts "heddle compiles no extension: #{reason}. The gem steps aside then: Heddle.supported? is false, and Puma, " \
       "Rails and Sidekiq keep their threads. See docs/deployment.md, Laptops."
  File.write("Makefile", ".PHONY: all clean install\nall clean install:\n")
else
  require "mkmf"
  require "rb_sys/mkmf"

  create_rust_makefile("heddle/heddle")
end
