# frozen_string_literal: true

require "mysql2"
require_relative "../offload"

return unless Heddle.supported?

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

    # `Client#connect` is private.
    {
      "connecting by mysql2, and preparing a statement, block" => { "Mysql2::Client" => Mysql2Calls::Client },
      "executing a prepared statement of mysql2 blocks" => { "Mysql2::Statement" => Mysql2Calls::Statement }
    }.each do |what, overrides|
      AdapterPart.new(
        "mysql2", ::Mysql2::VERSION, right_with: "0.5.7", without: "#{what} all fibers of the thread", overrides:
      ).install
    end
  end
end
