# frozen_string_literal: true

# Ruby's test/fiber loads this file in place of its own scheduler.rb. It defines the same names with Heddle.

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "heddle"
# As the suite's own scheduler.rb does; some tests rely on it.
require "socket"
require "io/nonblock"
require_relative "interface_versions"

Warning[:experimental] = false

class Scheduler < Heddle::Scheduler
  InterfaceVersions.wanted&.then { |version| include version }

  # Most of the suite's assertions are made in fibers, and count on a scheduler that dies of the first error. Heddle
  # reports such an error and continues, so it is kept here until the test's thread asks for the outcome.
  def fiber(*, **)
    super do |*values|
      yield(*values)
    rescue SystemExit, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- a failed assertion isn't a StandardError
      (@errors ||= []) << e
    end
  end

  def run
    super
    raise_first_error
  end

  def scheduler_close
    super
    raise_first_error
  ensure
    @closed = true
  end

  def closed?
    @closed
  end

  # The suite's scheduler has a loop, and this call enters it for good. Heddle waits for every fiber at its end, so this
  # method returns when the other fibers have had time enough.
  def transfer
    block(:transfer, 0.5)
  end

  private

  def raise_first_error
    error = @errors&.shift
    raise error if error
  end
end

# With this class the suite tests the hooks for reading and writing. Heddle always has them.
class IOBufferScheduler < Scheduler
end

class IOScheduler < Scheduler
  def operations
    @operations ||= []
  end

  # The order of the last two arguments is that of `IO::Buffer#write`, in each version of the interface.
  def io_write(io, buffer, *range)
    operations << [:io_write, io.fileno, buffer.get_string]
    Fiber.blocking { buffer.write(io, *range) }
  end
end

class IOErrorScheduler < Scheduler
  def io_read(*)
    -Errno::EBADF::Errno
  end

  def io_write(*)
    -Errno::EINVAL::Errno
  end
end

class BrokenUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super
    raise "Broken unblock!"
  end
end

class SleepingUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super
    sleep(0.1)
  end
end

class SleepingBlockingScheduler < Scheduler
  def kernel_sleep(duration = nil)
    Fiber.blocking { sleep(0.0001) }
    block(:sleep, duration)
  end
end
