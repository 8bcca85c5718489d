# frozen_string_literal: true

require "rails/railtie"
require "active_support/isolated_execution_state"
require "active_support/concurrency/share_lock"
require "active_support/current_attributes"
require "rails/version"
require "heddle"

# The lock for reloading and Action Cable's connections are private.
Heddle.const_get(:TriedVersions).check("rails", Rails::VERSION::STRING)

require "heddle/executor"

# Each file changes one part of Rails; the Railtie says when.
require_relative "rails/cable"
require_relative "rails/checks"
require_relative "rails/interlock"
require_relative "rails/live"
require_relative "rails/request_context"
require_relative "rails/railtie"
