# frozen_string_literal: true

require "rbconfig"
require "socket"
require_relative "heddle/version"

# A source tree holds one build of the extension per Ruby side by side, as gems with prebuilt extensions do; an
# installed gem holds the one that was built for its Ruby.
build = File.join(__dir__, "heddle", RUBY_VERSION[/\d+\.\d+/], "heddle.#{RbConfig::CONFIG["DLEXT"]}")
require File.exist?(build) ? build : "heddle/heddle"

require_relative "heddle/scheduler"
require_relative "heddle/experimental"
require_relative "heddle/blocking_work"
require_relative "heddle/fiber_raise"
require_relative "heddle/io_close"
require_relative "heddle/mutex_sleep"
require_relative "heddle/process_wait"
require_relative "heddle/select_now"
require_relative "heddle/signal_handlers"
require_relative "heddle/timeout_limit"
require_relative "heddle/unhandled_error"
require_relative "heddle/abandonment"
require_relative "heddle/yielding_fiber"
require_relative "heddle/io_pwrite" if RUBY_VERSION < "4.0"
require_relative "heddle/tcp_socket"
require_relative "heddle/run"
require_relative "heddle/structured"
require_relative "heddle/integrations/active_record"
require_relative "heddle/integrations/async"
