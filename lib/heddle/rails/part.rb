# frozen_string_literal: true

module Heddle
  # What Heddle changes in Rails; see docs/rails.md.
  module RailsSupport
    # The newest version of Rails with which the specs ran.
    RIGHT_WITH = "8.1.3"

    # @param without [String] (see AdapterPart#initialize)
    # @return [AdapterPart] a part of the adapter
    def self.part(without, **)
      AdapterPart.new("rails", ::Rails::VERSION::STRING, right_with: RIGHT_WITH, without:, **)
    end

    private_constant :RIGHT_WITH

    # Requests would be mixed otherwise.
    part("the fibers of a thread would share their database connection and CurrentAttributes",
         uses: ["ActiveSupport::IsolatedExecutionState.isolation_level()",
                "ActiveSupport::IsolatedExecutionState.isolation_level=(_)",
                "ActiveSupport::IsolatedExecutionState.context()"]).demand
  end
end
