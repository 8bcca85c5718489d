# frozen_string_literal: true

module Heddle # :nodoc:
  # Passes `IO#pwrite` to Heddle before Ruby calls the hook `io_pwrite`. Ruby 3.3 and 3.4 call that hook without the
  # GVL: two threads then run Ruby code at once, and Ruby's timer thread loops for ever. Ruby 4.0 calls the hook with
  # the GVL, so this file is not loaded there.
  module IOPwrite
    # Writes at an offset; see Ruby's documentation.
    #
    # @param object [#to_s] what to write
    # @param offset [Integer] the position in the file, in bytes
    # @return [Integer] the number of bytes written
    def pwrite(object, offset)
      scheduler = Fiber.current_scheduler
      return super unless scheduler.is_a?(Scheduler)

      # Each is converted once, in Ruby's order.
      string = object.is_a?(String) ? object : "#{object}" # rubocop:disable Style/RedundantInterpolation -- as Ruby does
      offset = Native.offset(offset)
      # Writing nothing runs all of Ruby's checks of the IO.
      Fiber.blocking { super("", offset) }
      Native.write_at(scheduler, self, string, offset)
    end
  end
  private_constant :IOPwrite

  Patches.add { IO.prepend(IOPwrite) }
end
