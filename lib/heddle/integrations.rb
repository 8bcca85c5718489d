# frozen_string_literal: true

require_relative "integrations/adapter_part"
require_relative "integrations/active_record"
require_relative "integrations/fiber_isolation"
require_relative "integrations/pool_waits"
require_relative "integrations/async"

module Heddle # :nodoc:
  # Looks for other libraries when a scheduler is made or closed: they may be loaded at any time before.
  module LibraryChecks
    # Makes the scheduler; see {Scheduler#initialize}.
    def initialize(...)
      super
      ConnectionSharing.check
      PoolWaits.install
    end

    # @api private
    def scheduler_close
      ConnectionSharing.check
    ensure
      super
    end
  end
  private_constant :LibraryChecks

  Scheduler.prepend(LibraryChecks)
end
