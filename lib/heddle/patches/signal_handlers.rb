# frozen_string_literal: true

module Heddle
  # Sends what signal handlers raise to the main thread's root fiber; see scheduler/interrupting.rs. Ruby runs a handler
  # in whichever fiber is running, and raises the handler's exceptions there, an `exit` for instance. So while a Heddle
  # scheduler is open on the main thread, {run} stands in for every handler, calls the program's own handler and sends
  # its exceptions to the root.
  #
  # Programs do not notice this: {TrapPatch} makes `trap` return the handlers that the program has set itself.
  #
  # @api private
  module SignalHandlers
    # Signals that have no Ruby handler, or a handler that Ruby keeps to itself.
    NOT_REPLACED = Signal.list.values_at("EXIT", "KILL", "STOP", "SEGV", "BUS", "ILL", "FPE", "VTALRM").freeze
    # Signals for which Ruby raises a SignalException if the program has set no handler.
    RAISING = Signal.list.values_at("INT", "HUP", "TERM", "QUIT", "ALRM", "USR1", "USR2").compact.freeze
    # Ruby raises at once for SIGINT, whatever `Thread.handle_interrupt` says, and by `Thread#raise` for the others.
    INTERRUPT = Signal.list.fetch("INT")

    # Ruby's own method, without the modules that are prepended to it.
    RUBY_TRAP = Signal.method(:trap)

    # Prepended to the modules that have `trap`, when Heddle first needs to know the program's handlers.
    module TrapPatch
      # Handles a signal; see Ruby's documentation.
      def trap(signal, ...)
        return super unless Ractor.current.equal?(Ractor.main)

        Heddle.__send__(:trapping, signal)
        SignalHandlers.replaced(signal, super)
      end
    end

    # The same for Kernel's private method.
    module PrivateTrapPatch
      include TrapPatch

      private :trap
    end

    # The program's handlers that the stand-in replaces, by signal number.
    @handlers = {}
    @stand_in = ->(number) { SignalHandlers.run(number) }

    class << self
      # From now on, observes which handlers the program sets with `trap`. The extension calls this.
      def patch_trap
        return if @trap_patched

        @trap_patched = true
        [Signal.singleton_class, Kernel.singleton_class].each { |place| place.prepend(TrapPatch) }
        Kernel.prepend(PrivateTrapPatch)
      end

      # A scheduler opens on the main thread. The extension calls this.
      def install
        return if @installed

        patch_trap
        @installed = true
        (Signal.list.values.uniq - NOT_REPLACED).each { |number| reclaim(number) }
      end

      # The main thread's scheduler closes: restores the program's handlers. The extension calls this.
      def restore
        @installed = false
        @handlers.each do |number, handler|
          found = RUBY_TRAP.call(number, handler)
          RUBY_TRAP.call(number, found) unless found.equal?(@stand_in)
        end
        @handlers.clear
      end

      # Restores the program's handler of one signal, because a ticker is going to use the signal. The extension calls
      # this.
      def release(number)
        RUBY_TRAP.call(number, @handlers.delete(number)) if @handlers.key?(number)
      end

      # Sets the stand-in for one signal, if the signal can be handled. The extension calls this.
      def reclaim(number)
        replace_handler(number) if @installed && Heddle.__send__(:handles_signal?, number)
      end

      # Called after the program has set a handler.
      #
      # @param signal [String, Symbol, Integer]
      # @param found [Object] what Ruby's `trap` returned
      # @return [Object] the program's previous handler
      def replaced(signal, found)
        return found unless @installed

        number = number_of(signal)
        found = @handlers.delete(number) if found.equal?(@stand_in)
        reclaim(number) unless NOT_REPLACED.include?(number)
        found
      end

      # Runs the program's handler, in whichever fiber is running.
      def run(number)
        handler = @handlers[number]
        return run_in_root(handler, number) if Scheduler.__send__(:handles_interrupts?)

        # Outside of a `rescue`, because the fiber may be told to end before `send_to_root` returns.
        raised = exception_of(handler, number)
        Scheduler.__send__(:send_to_root, raised) if raised
      end

      private

      # Sets the stand-in, and remembers the program's handler. A disposition without a Ruby handler stays as it is.
      def replace_handler(number)
        handler = RUBY_TRAP.call(number, @stand_in)
        return if handler.equal?(@stand_in)

        if replaceable?(handler, number)
          @handlers[number] = handler
        else
          RUBY_TRAP.call(number, handler)
        end
      end

      def replaceable?(handler, number)
        case handler
        when "DEFAULT" then RAISING.include?(number)
        when "SYSTEM_DEFAULT", "IGNORE", nil then false
        # "EXIT", a String to evaluate, or an object with `call`.
        else true
        end
      end

      def run_in_root(handler, number)
        return Thread.current.raise(default_exception(number)) if handler == "DEFAULT" && number != INTERRUPT

        call(handler, number)
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again
        Scheduler.__send__(:record_interrupt, e)
        raise
      end

      # @return [Exception, nil] what the handler raised
      def exception_of(handler, number)
        return default_exception(number) if handler == "DEFAULT"

        # Exceptions from other fibers must not be taken for the handler's own, so they are deferred.
        Fiber.scheduler.__send__(:defer_raises) { call(handler, number) }
        nil
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised by the caller
        e
      end

      def call(handler, number)
        case handler
        # The backtrace is Ruby's own: it leaves out the methods of this module.
        when "DEFAULT" then raise Interrupt, "", caller(4)
        when "EXIT" then exit
        when String then TOPLEVEL_BINDING.eval(handler)
        else handler&.call(number)
        end
      end

      # @return [SignalException] what Ruby raises for a signal without a handler
      def default_exception(number)
        number == INTERRUPT ? Interrupt.new("") : SignalException.new(number)
      end

      def number_of(signal)
        return signal if signal.is_a?(Integer)

        name = signal.respond_to?(:to_str) ? signal.to_str : signal.to_s
        Signal.list.fetch(name.delete_prefix("SIG"))
      end
    end
  end
  private_constant :SignalHandlers
end
