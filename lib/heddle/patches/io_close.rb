# frozen_string_literal: true

module Heddle # :nodoc:
  # Not in the module that is prepended: its constants would be IO's, too.
  ALL_EVENTS = IO::READABLE | IO::PRIORITY | IO::WRITABLE
  # Whether closing an IO concerns the fibers that use its descriptor by another IO. A thread is concerned, too, before
  # Ruby 4.0.
  CLOSE_CONCERNS_OTHER_IOS = RUBY_VERSION < "4.0"
  private_constant :ALL_EVENTS, :CLOSE_CONCERNS_OTHER_IOS

  # Ends all operations on an IO before Ruby closes it. The system gives the descriptor's number to the next file that
  # is opened, so an operation that went on would use the wrong file. The operations of all schedulers in the process
  # end, and their fibers raise IOError, as threads do.
  #
  # Ruby 3.3 and 3.4 have no hook for this. Ruby 4.0 interrupts fibers that wait on the same IO object. It does not
  # interrupt fibers that wait on another IO with the same number, or on several IOs in `IO.select`.
  module IOClose
    # Closes the IO; see Ruby's documentation.
    def close
      # The descriptor stays open.
      return super unless CLOSE_CONCERNS_OTHER_IOS || closed? || autoclose?

      Native.closing(self, ALL_EVENTS) { super }
    end

    # Opens another file under this IO; see Ruby's documentation.
    def reopen(...)
      Native.closing(self, ALL_EVENTS) { super }
    end
  end

  # Ends the operations on an IO before Ruby closes its last open side, and gives the number back. Sockets have methods
  # of their own, which Ruby finds before those of IO.
  module SideClose
    # Closes the side to read from; see Ruby's documentation.
    def close_read
      Native.closing(self, IO::READABLE) { super }
    end

    # Closes the side to write to; see Ruby's documentation.
    def close_write
      Native.closing(self, IO::WRITABLE) { super }
    end
  end
  private_constant :IOClose, :SideClose

  Patches.add do
    IO.prepend(IOClose, SideClose)
    BasicSocket.prepend(SideClose)
  end
end
