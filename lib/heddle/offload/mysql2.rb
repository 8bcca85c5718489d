# frozen_string_literal: true

require "mysql2"
require_relative "../offload"

module Heddle
  module Offload # :nodoc:
    # Connecting, `ping` and prepared statements of mysql2 block the thread; `query` does not.
    module Mysql2Calls
      # For clients.
      module Client
        # Prepares a statement; see mysql2's documentation.
        def prepare(...) = Offload.call { super }

        # Asks the server whether it is there; see mysql2's documentation.
        def ping = Offload.call { super }

        private

        def connect(...) = Offload.call { super }
      end

      # For prepared statements.
      module Statement
        # Executes the statement; see mysql2's documentation.
        def execute(...) = Offload.call { super }
      end
    end
    private_constant :Mysql2Calls

    ::Mysql2::Client.prepend(Mysql2Calls::Client)
    ::Mysql2::Statement.prepend(Mysql2Calls::Statement)
  end
end
