# frozen_string_literal: true

module Heddle # :nodoc:
  # Ruby 3.3 and 3.4 have no hook that tells a scheduler of an IO being closed: a fiber that waits on it would never
  # wake, and an operation in the kernel would keep the file open. So whatever closes tells the schedulers first; fibers
  # that wait on the IO raise IOError, as threads do. Ruby 4.0 calls `fiber_interrupt`, and this file is not loaded.
  module IOClose
    # Closes the IO; see Ruby's documentation.
    def close
      Scheduler.closing(self)
      super
    end

    # Closes a pipe's end; of a socket, the side to read from, which by itself wakes who waits.
    def close_read
      Scheduler.closing(self) unless duplex?
      super
    end

    # Closes a pipe's end; of a socket, the side to write to, which by itself wakes who waits.
    def close_write
      Scheduler.closing(self) unless duplex?
      super
    end

    # Makes the IO another file; see Ruby's documentation.
    def reopen(...)
      Scheduler.closing(self)
      super
    end

    private

    def duplex?
      defined?(BasicSocket) && is_a?(BasicSocket)
    end
  end
  private_constant :IOClose

  IO.prepend(IOClose)
end
