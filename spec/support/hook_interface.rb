# frozen_string_literal: true

# The version of the interface between the running Ruby and schedulers.
module HookInterface
  HEADER = File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby", "fiber", "scheduler.h")
  VERSION = Integer(File.read(HEADER)[/RUBY_FIBER_SCHEDULER_VERSION (\d+)/, 1])
  # Before version 4, the length that a program passes to `IO::Buffer#read` is the least number of bytes.
  WAITS = VERSION < 4
end
