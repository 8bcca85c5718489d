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
      select(readers, writers, exceptions)
    rescue Errno::EBADF
      # Ruby releases the GVL for select(2), and another thread may have closed an IO meanwhile. Then this raises
      # IOError.
      select(readers, writers, exceptions)
    end

    # In a blocking fiber Ruby calls select(2) itself. Elsewhere it would call the hook again.
    def self.select(*lists) = Fiber.blocking { IO.select(*lists, 0) }
    private_class_method :select
  end
  private_constant :SelectNow
end
