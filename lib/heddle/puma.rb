# frozen_string_literal: true

require "puma"
require "puma/server"
require "puma/dsl"
require_relative "../heddle"

# What `Server#run` does is done anew, and a server's private methods are called.
Heddle.const_get(:TriedVersions).check("puma", Puma::Const::PUMA_VERSION)

require_relative "metrics/lag_probe"
require_relative "puma/settings"
require_relative "puma/connection"
require_relative "puma/permits"
require_relative "puma/fiber_pool"
require_relative "puma/reactor"
require_relative "puma/server_thread"
require_relative "puma/slow_requests"
require_relative "puma/rack_timeout"
require_relative "puma/request_name"
require_relative "puma/request"
require_relative "puma/server"
require_relative "puma/dsl"
