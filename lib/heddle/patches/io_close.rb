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

      Scheduler.__send__(:closing, self, ALL_EVENTS) { super }
    end

    # Closes the side to read from. Fibers that wait to write continue to wait.
    def close_read
      Scheduler.__send__(:closing, self, IO::READABLE) { super }
    end

    # Closes the side to write to. Fibers that wait to read continue to wait.
    def close_write
      Scheduler.__send__(:closing, self, IO::WRITABLE) { super }
    end

    # Opens another file under this IO; see Ruby's documentation.
    def reopen(...)
      Scheduler.__send__(:closing, self, ALL_EVENTS) { super }
    end
  end
  private_constant :IOClose

  IO.prepend(IOClose)
end
