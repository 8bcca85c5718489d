# frozen_string_literal: true

module Heddle
  # The part of the hook `io_select` that is written in Ruby: asks which IOs are ready, without waiting.
  module SelectNow
    # The extension calls this.
    #
    # @param readers [Array<IO>, nil]
    # @param writers [Array<IO>, nil]
    # @param exceptions [Array<IO>, nil]
    # @return [Array<Array<IO>>, nil] as `IO.select` returns it
    def self.call(readers, writers, exceptions)
      # In a blocking fiber Ruby calls select(2) itself. Elsewhere it would call the hook again.
      Fiber.blocking { IO.select(readers, writers, exceptions, 0) }
    end
  end
  private_constant :SelectNow
end
