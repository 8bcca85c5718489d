# frozen_string_literal: true

module Heddle # :nodoc:
  # Ruby 3.3 and 3.4 have no hook that tells a scheduler of an IO being closed: a fiber that waits on it would never
  # wake, and an operation in the kernel would keep the file open. So whatever closes tells the schedulers first; fibers
  # that wait on the IO raise IOError, as threads do. Ruby 4.0 calls `fiber_interrupt`, and this file is not loaded.
  module IOClose
    ALL = IO::READABLE | IO::PRIORITY | IO::WRITABLE
    private_constant :ALL

    # Closes the IO; see Ruby's documentation.
    def close
      IOClose.alone(self, ALL) { super }
    end

    # Closes the side to read from. What still waits to write goes on.
    def close_read
      IOClose.alone(self, IO::READABLE) { super }
    end

    # Closes the side to write to. What still waits to read goes on.
    def close_write
      IOClose.alone(self, IO::WRITABLE) { super }
    end

    # Makes the IO another file; see Ruby's documentation.
    def reopen(...)
      IOClose.alone(self, ALL) { super }
    end

    # Nobody is to begin to wait on the IO between the two.
    def self.alone(io, interest)
      Heddle.without_preemption do
        Scheduler.closing(io, interest)
        yield
      end
    end
  end
  private_constant :IOClose

  IO.prepend(IOClose)
end
