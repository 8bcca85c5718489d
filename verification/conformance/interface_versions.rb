# frozen_string_literal: true

# Newer versions of the interface between Ruby and schedulers, for Rubies that do not have them. INTERFACE=4 or 5 has a
# module stand between Ruby and Heddle that takes Ruby's calls, and calls Heddle as a Ruby with that version does.
module InterfaceVersions
  NATIVE = Heddle.const_get(:Native)
  HEADER = File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby/fiber/scheduler.h")
  # The version of the running Ruby.
  OWN = Integer(File.read(HEADER)[/RUBY_FIBER_SCHEDULER_VERSION (\d+)/, 1])

  # A hook transfers at most `length` bytes from `offset` on, once. Ruby waits and transfers the rest, where it has to.
  module Four
    def io_read(io, buffer, length, offset)
      repeat(io, IO::READABLE, length) do |done|
        NATIVE.read_once(self, io, buffer, offset + done, buffer.size - offset - done)
      end
    end

    def io_write(io, buffer, length, offset)
      repeat(io, IO::WRITABLE, length) do |done|
        NATIVE.write_once(self, io, buffer, offset + done, buffer.size - offset - done)
      end
    end

    def io_pread(io, buffer, from, length, offset)
      repeat(io, IO::READABLE, length) do |done|
        NATIVE.pread_once(self, io, buffer, from + done, offset + done, buffer.size - offset - done)
      end
    end

    def io_pwrite(io, buffer, from, length, offset)
      repeat(io, IO::WRITABLE, length) do |done|
        NATIVE.pwrite_once(self, io, buffer, from + done, offset + done, buffer.size - offset - done)
      end
    end

    private

    # Until `least` bytes are transferred, which is how older Rubies define `IO::Buffer#read` and its like.
    def repeat(io, events, least)
      done = 0
      loop do
        result = yield done
        if result == -Errno::EAGAIN::Errno && least.positive?
          io_wait(io, events, nil)
          next
        end
        return done.positive? ? done : result unless result.positive?

        done += result
        return done if done >= least
      end
    end
  end

  # What Ruby passes to `fiber_interrupt` in place of the fiber. It is alive as long as the operation on the IO.
  class Operation
    def initialize(fiber)
      @fiber = fiber
      @over = false
    end

    def alive? = !@over

    # An exception is on its way to the operation.
    def expect(exception) = (@exception = exception)

    # Called by the scheduler, at any time.
    def raise(*)
      return unless alive?

      @exception = nil
      @fiber.raise(*)
    end

    # The operation is over. What the scheduler has not raised by now, Ruby raises.
    def finish
      @over = true
      Kernel.raise(@exception) if @exception
    end

    def abandon = @over = true
  end

  # `fiber_interrupt` gets an Operation.
  module Five
    include Four

    %i[io_wait io_read io_write io_pread io_pwrite].each do |hook|
      define_method(hook) do |*arguments|
        outer = operations[Fiber.current]
        operation = operations[Fiber.current] = Operation.new(Fiber.current)
        super(*arguments).tap { operation.finish }
      ensure
        operation.abandon
        operations[Fiber.current] = outer
      end
    end

    def fiber_interrupt(fiber, exception)
      operation = operations[fiber]
      operation&.expect(exception)
      super(operation || fiber, exception)
    end

    private

    def operations = @operations ||= ObjectSpace::WeakKeyMap.new
  end

  BY_NUMBER = { 4 => Four, 5 => Five }.freeze

  # @return [Module, nil] the one for the version that INTERFACE names, if the running Ruby has an older one
  def self.wanted
    return unless ENV.key?("INTERFACE")

    number = Integer(ENV.fetch("INTERFACE"))
    wanted = BY_NUMBER.fetch(number) { abort "INTERFACE is 4 or 5, not #{number}" }
    wanted if number > OWN
  end
end
