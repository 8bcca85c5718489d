# frozen_string_literal: true

require "sqlite3"
require_relative "../offload"

return unless Heddle.supported?

module Heddle
  module Offload # :nodoc:
    # `busy_timeout=` waits for a lock inside SQLite, with the GVL, so no thread of a pool could help: no other thread
    # of the process runs meanwhile. `busy_handler_timeout=`, which replaces it here, sleeps in Ruby, and so in the
    # fiber.
    module SQLite3Waits
      # @param milliseconds [Integer] how long a statement waits for a lock of another connection; 0 is not at all
      def busy_timeout=(milliseconds)
        super(0)
        self.busy_handler_timeout = milliseconds
      end

      # The same.
      def busy_timeout(milliseconds) = self.busy_timeout = milliseconds
    end
    private_constant :SQLite3Waits

    AdapterPart.new(
      "sqlite3", ::SQLite3::VERSION,
      right_with: "2.9.6", without: "a wait for a lock of SQLite by busy_timeout= blocks all fibers of its thread",
      uses: ["SQLite3::Database#busy_handler_timeout=(_)"], overrides: { "SQLite3::Database" => SQLite3Waits }
    ).install
  end
end
