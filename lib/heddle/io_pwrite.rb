# frozen_string_literal: true

module Heddle # :nodoc:
  # Ruby 3.3 and 3.4 call the `io_pwrite` hook of a scheduler from within a blocking region, that is without the GVL:
  # two threads then run Ruby at once, and Ruby's timer thread is left in an endless loop. So `IO#pwrite` goes to Heddle
  # before it comes so far. Ruby 4.0 does it right, and this file is not loaded.
  module IOPwrite
    # @param object [#to_s] what to write
    # @param offset [Integer] where in the file
    # @return [Integer] the number of bytes written
    def pwrite(object, offset)
      scheduler = Fiber.current_scheduler
      return super unless scheduler.is_a?(Scheduler)

      # Nothing is written by this, but all that Ruby checks is checked.
      Fiber.blocking { super("", offset) }
      scheduler.__send__(:write_at, self, object.to_s, offset)
    end
  end
  private_constant :IOPwrite

  IO.prepend(IOPwrite)
end
