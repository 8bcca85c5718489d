# frozen_string_literal: true

module Heddle # :nodoc:
  # A fiber's wait for the lock of a file.
  module LockWait
    # With these bits `flock` does not wait.
    NEVER = File::LOCK_NB | File::LOCK_UN

    # @param file [File]
    # @yield waits for the lock
    # @return [Object] the block's value
    def self.for(file)
      taken = waited = nil
      waited = WaitNames.within("the lock of a file", -> { file.path }) do
        HelperThread.run(joins: true) { taken = yield }
      end
    ensure
      # The wait was broken off when the lock had just been taken.
      file.flock(File::LOCK_UN) if taken && !waited && !file.closed?
    end
  end

  # Lets the other fibers run while a fiber waits for the lock of a file. Ruby has no hook for this, and one of them may
  # have the lock: the thread would stand still for ever.
  module FileLock
    # Locks or unlocks the file; see Ruby's documentation.
    def flock(operation)
      return super unless operation.is_a?(Integer) && operation.nobits?(LockWait::NEVER)
      return super unless Fiber.current_scheduler.is_a?(Scheduler)

      super(operation | File::LOCK_NB) || LockWait.for(self) { super(operation) }
    end
  end
  private_constant :LockWait, :FileLock

  Patches.add { File.prepend(FileLock) }
end
