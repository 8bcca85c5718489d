# frozen_string_literal: true

module Heddle
  # Ruby 3.3 and 3.4 have no hook that tells a scheduler of an IO being closed: a fiber that waits on it would never
  # wake, and an operation in the kernel would keep the file open. So `close` tells the schedulers first. Ruby 4.0 calls
  # `fiber_interrupt`, and this file is not loaded.
  module IOClose
    # Closes the IO; fibers that wait on it raise IOError, as threads do.
    def close
      Scheduler.closing(self)
      super
    end
  end
  private_constant :IOClose

  IO.prepend(IOClose)
end
