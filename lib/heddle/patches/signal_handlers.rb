# frozen_string_literal: true

module Heddle
  # Sends what signal handlers raise to the main thread's root fiber; see scheduler/root_interrupts.rs. Ruby runs a
  # handler in whichever fiber is running, and raises the handler's exceptions there, an `exit` for instance. So while a
  # Heddle scheduler is open on the main thread, {run} stands in for every handler, calls the program's own handler and
  # sends its exceptions to the root.
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

    # Prepended to the modules that have `trap`, when Heddle first needs to know the program's handlers.
    module TrapPatch
      # Handles a signal; see Ruby's documentation.
      def trap(signal, ...)
        return super unless Ractor.current.equal?(Ractor.main)

        Native.trapping(signal)
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
    # Signals that came while the stand-in had no handler to call.
    @missed = []
    @stand_in = ->(number) { SignalHandlers.run(number) }

    class << self
      # Ruby's own method, without the modules that are prepended to it. It is called as such, and not by a Method
      # object, so that Ruby handles no signal before the caller has kept the result.
      ruby_trap = Kernel.instance_method(:trap)
      # A debugger prepends a method of its own, whose `super` would be TrapPatch here.
      ruby_trap = ruby_trap.super_method until ruby_trap.owner.equal?(Kernel)
      define_method(:ruby_trap, ruby_trap)

      # From now on, observes which handlers the program sets with `trap`. The extension calls this.
      def patch_trap
        return if @trap_patched

        [Signal.singleton_class, Kernel.singleton_class].each { |place| place.prepend(TrapPatch) }
        Kernel.prepend(PrivateTrapPatch)
        @trap_patched = true
      end

      # A scheduler opens on the main thread. The extension calls this.
      def install
        return if @installed

        patch_trap
        @installed = true
        exhaust(Signal.list.values.uniq - NOT_REPLACED) { |number| reclaim(number) }
      end

      # The main thread's scheduler closes: restores the program's handlers. The extension calls this.
      def restore
        @installed = false
        keep_found
        exhaust(@handlers.keys) do |number|
          next unless (handler = @handlers[number])

          found = ruby_trap(number, handler)
          ruby_trap(number, found) unless found.equal?(@stand_in)
          @handlers.delete(number)
        end
      end

      # Restores the program's handler of one signal, because a ticker is going to use the signal. The extension calls
      # this.
      def release(number)
        return unless @handlers.key?(number)

        ruby_trap(number, @handlers.delete(number))
        send_missed(number)
      end

      # Sets the stand-in for one signal, if the signal can be handled. The extension calls this.
      def reclaim(number)
        replace_handler(number) if @installed && Native.handles_signal?(number)
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
        # An exception that was sent to this fiber is not the handler's. It is taken first: Ruby raises it at the end of
        # the first method here that is written in Ruby, and the handler would not run.
        sent = Native.take_sent
        keep_found
        handler = @handlers[number]
        if !handler
          @missed << number
        elsif Native.handles_interrupts?
          run_in_root(handler, number, sent)
        else
          # Outside of a `rescue`, because the fiber may be stopped before `send_to_root` returns.
          raised = exception_of(handler, number)
          Native.send_to_root(raised) if raised
        end
        raise sent if sent
      end

      private

      # Calls the block with each item, and then removes the item. An interrupt that is raised meanwhile propagates when
      # no item is left. It may repeat the call for one item.
      #
      # @param items [Array]
      def exhaust(items, &block)
        until items.empty?
          block.call(items.first)
          items.shift
        end
      ensure
        exhaust(items, &block) unless items.empty?
      end

      # Sets the stand-in, and remembers the program's handler. A disposition without a Ruby handler stays as it is. A
      # signal may come, and an interrupt be raised, at any point.
      def replace_handler(number)
        @found = [number, ruby_trap(number, @stand_in)]
        keep_found
        send_missed(number)
      end

      def send_missed(number)
        Process.kill(number, Process.pid) if @missed.delete(number)
      end

      # Remembers the handler that the stand-in has replaced, or restores it. A signal may come before that, or an
      # interrupt keep {replace_handler} from it.
      def keep_found
        return unless @found

        number, handler = @found
        if !replaceable?(handler, number)
          ruby_trap(number, handler)
        elsif !handler.equal?(@stand_in)
          @handlers[number] = handler
        end
        @found = nil
      end

      def replaceable?(handler, number)
        case handler
        when "DEFAULT" then RAISING.include?(number)
        when "SYSTEM_DEFAULT", "IGNORE", nil then false
        # "EXIT", a String to evaluate, or an object with `call`.
        else true
        end
      end

      # @param sent [Exception, nil] raised by the caller, unless the handler raises
      def run_in_root(handler, number, sent)
        return Thread.current.raise(default_exception(number)) if handler == "DEFAULT" && number != INTERRUPT

        handler == "DEFAULT" ? call(handler, number) : Native.keep_wake_ups { call(handler, number) }
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again
        Native.record_interrupt(e)
        Native.send_to_root(sent) if sent
        raise
      end

      # @return [Exception, nil] what the handler raised
      def exception_of(handler, number)
        return default_exception(number) if handler == "DEFAULT"

        # Exceptions from other fibers must not be taken for the handler's own, so they are deferred.
        Native.keep_wake_ups { Native.defer_raises(Fiber.scheduler) { call(handler, number) } }
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
