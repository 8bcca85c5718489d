# frozen_string_literal: true

module Heddle
  # Ruby's own IO.select, for what is ready at this moment.
  module SelectNow
    # @return [Array<Array<IO>>, nil] as IO.select
    def self.call(readers, writers, exceptions)
      # In a blocking fiber Ruby does it itself, instead of asking the scheduler again.
      Fiber.blocking { IO.select(readers, writers, exceptions, 0) }
    end
  end
  private_constant :SelectNow
end
