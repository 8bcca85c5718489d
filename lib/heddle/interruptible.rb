# frozen_string_literal: true

module Heddle
  # A block of the calling fiber, into which other threads may raise as they raise into a thread.
  class Interruptible
    # What {#raise} makes of no arguments, as Ruby does.
    DEFAULT = [RuntimeError, ""].freeze
    # Held by no fiber that is switched away from, so a child that another fiber forks finds it free.
    LOCK = Mutex.new
    private_constant :DEFAULT, :LOCK

    # Runs the block.
    #
    # A call of {#raise} sets `@sent` before it looks for the fiber. So either that is seen at the end, or the call
    # finds no fiber. Therefore the end of a request mostly needs no lock.
    #
    # @return [Object] the block's value
    def run
      @scheduler = Context.scheduler_if_any
      @fiber = Fiber.current
      yield
    ensure
      @fiber = nil
      Native.defer_raises(@scheduler) { retract_all } if @sent && @scheduler
    end

    # Raises in the fiber, whatever it waits for or computes. Any thread may call this.
    #
    # @param arguments [Array] those of `Thread#raise`
    # @return [Boolean] false if the block has ended, and so nothing is raised
    # @raise [TypeError] if the first argument is no exception
    def raise(*arguments, **keywords)
      error = exception(*(arguments.empty? ? DEFAULT : arguments), **keywords)
      Heddle.without_preemption do
        LOCK.synchronize do
          @sent ||= []
          number = @fiber && @scheduler && Native.deliver(@scheduler, @fiber, error)
          @sent << number if number
          !number.nil?
        end
      end
    end

    private

    # What was not raised in time must not be raised in the fiber later.
    def retract_all
      LOCK.synchronize { @sent.each { |number| Native.retract(@scheduler, Fiber.current, number) } }
    end

    def exception(kind, *message, **keywords)
      return RuntimeError.new(kind) if kind.is_a?(String)

      Kernel.raise TypeError, "exception class/object expected" unless kind.respond_to?(:exception)
      backtrace = message.delete_at(1)
      kind.exception(*message, **keywords).tap { |error| error.set_backtrace(backtrace) if backtrace }
    end
  end
  private_constant :Interruptible
end
