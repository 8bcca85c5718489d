# frozen_string_literal: true

module Heddle # :nodoc:
  # A descriptor's number is given to the next file that is opened. So before Ruby closes an IO, every operation on its
  # number, in all schedulers of the process, is ended; fibers that wait on it raise IOError, as threads do.
  #
  # Ruby 3.3 and 3.4 tell no scheduler of an IO being closed. Ruby 4.0 tells those that wait on the IO itself, and not
  # those that wait on another IO with the same number, or on several in `IO.select`.
  module IOClose
    ALL = IO::READABLE | IO::PRIORITY | IO::WRITABLE
    private_constant :ALL

    # Closes the IO; see Ruby's documentation.
    def close
      Scheduler.__send__(:closing, self, ALL) { super }
    end

    # Closes the side to read from. What still waits to write goes on.
    def close_read
      Scheduler.__send__(:closing, self, IO::READABLE) { super }
    end

    # Closes the side to write to. What still waits to read goes on.
    def close_write
      Scheduler.__send__(:closing, self, IO::WRITABLE) { super }
    end

    # Makes the IO another file; see Ruby's documentation.
    def reopen(...)
      Scheduler.__send__(:closing, self, ALL) { super }
    end
  end
  private_constant :IOClose

  IO.prepend(IOClose)
end
