# frozen_string_literal: true

require "puma"
require "puma/server"
require "puma/dsl"
require_relative "../heddle"
require_relative "metrics/lag_probe"
require_relative "puma/settings"
require_relative "puma/connection"
require_relative "puma/fiber_pool"
require_relative "puma/reactor"
require_relative "puma/server"
require_relative "puma/dsl"
