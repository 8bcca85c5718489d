# frozen_string_literal: true

require "rails/railtie"
require "active_support/isolated_execution_state"
require "active_support/concurrency/share_lock"
require "active_support/current_attributes"
require "active_support/execution_context"
require "rails/version"
require "heddle"

unless Heddle.supported?
  require_relative "rails/threads_railtie"
  Heddle.const_get(:Extension).step_aside("Rails serves on threads")
  return
end

require "heddle/executor"
require_relative "rails/part"

# Each file changes one part of Rails; the Railtie says when.
require_relative "rails/cable"
require_relative "rails/checks"
require_relative "rails/interlock"
require_relative "rails/live"
require_relative "rails/request_context"
require_relative "rails/railtie"
