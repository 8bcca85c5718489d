# frozen_string_literal: true

# DRb objects are called from tasks

require "drb"
Remote = Class.new { def add(one, other) = sleep(0.01) && (one + other) }
DRb.start_service("druby://127.0.0.1:0", Remote.new)
remote = DRbObject.new_with_uri(DRb.uri)
say Array.new(5) { |number| task { remote.add(number, 1) } }.map(&:value)
DRb.stop_service
