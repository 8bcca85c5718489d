# frozen_string_literal: true

module Heddle
  # What signals raise belongs to the main thread's root fiber; see scheduler/interrupting.rs. Ruby runs the handler of
  # a signal in the fiber that it finds, and what the handler raises, an `exit` for instance, it raises there, too. So
  # while a scheduler of ours is open on the main thread the handlers run within {run}, which sends that to the root.
  #
  # A program does not see that: {Watch} has `trap` return what it has set itself.
  module SignalHandlers
    # Those that have no handler of Ruby's, or one that Ruby keeps to itself.
    LEFT_ALONE = Signal.list.values_at("EXIT", "KILL", "STOP", "SEGV", "BUS", "ILL", "FPE", "VTALRM").freeze
    # Those that raise a SignalException if the program has set nothing.
    RAISING = Signal.list.values_at("INT", "HUP", "TERM", "QUIT", "ALRM", "USR1", "USR2").compact.freeze
    # This one does at once, whatever `Thread.handle_interrupt` says, and the others by way of `Thread#raise`.
    INTERRUPT = Signal.list.fetch("INT")

    # Ruby's own, whatever is prepended to it.
    SET = Signal.method(:trap)
    private_constant :SET

    # Loaded into `trap` when it is first of use, and not before.
    module Watch
      # Handles a signal; see Ruby's documentation.
      def trap(signal, ...)
        return super unless Ractor.current.equal?(Ractor.main)

        Heddle.__send__(:trapping, signal)
        SignalHandlers.replaced(signal, super)
      end
    end

    @handlers = {}
    # Set in the place of each of them.
    @runner = ->(number) { SignalHandlers.run(number) }

    class << self
      # `trap` tells us from now on what the program sets.
      def watch
        return if @watching

        @watching = true
        [Signal.singleton_class, Kernel, Kernel.singleton_class].each { |place| place.prepend(Watch) }
      end

      # A scheduler is open on the main thread.
      def guard
        return if @guarding

        watch
        @guarding = true
        (Signal.list.values.uniq - LEFT_ALONE).each { |number| reclaim(number) }
      end

      # It is closed.
      def leave
        @guarding = false
        @handlers.each do |number, handler|
          found = SET.call(number, handler)
          SET.call(number, found) unless found.equal?(@runner)
        end
        @handlers.clear
      end

      # A ticker wants to use the signal: it is to be as the program has set it.
      def release(number)
        SET.call(number, @handlers.delete(number)) if @handlers.key?(number)
      end

      # What the program has set for the signal is guarded, if it can be.
      def reclaim(number)
        take(number) if @guarding && Heddle.__send__(:handles_signal?, number)
      end

      # The program has set a handler, and `trap` has returned `found`. Returns what it is to return.
      def replaced(signal, found)
        return found unless @guarding

        number = number_of(signal)
        found = @handlers.delete(number) if found.equal?(@runner)
        reclaim(number) unless LEFT_ALONE.include?(number)
        found
      end

      # Runs the program's handler, in whichever fiber there is.
      def run(number)
        handler = @handlers[number]
        return run_in_root(handler, number) if Scheduler.__send__(:answers?)

        # Not within a `rescue`: the fiber may be told to end before this returns.
        raised = raised_by(handler, number)
        Scheduler.__send__(:send_to_root, raised) if raised
      end

      private

      # Sets our handler in the place of the program's.
      def take(number)
        handler = SET.call(number, @runner)
        return if handler.equal?(@runner)

        if guarded?(handler, number)
          @handlers[number] = handler
        else
          SET.call(number, handler)
        end
      end

      def guarded?(handler, number)
        case handler
        when "DEFAULT" then RAISING.include?(number)
        when "SYSTEM_DEFAULT", "IGNORE", nil then false
        # "EXIT", or what is to be evaluated, or what can be called.
        else true
        end
      end

      def run_in_root(handler, number)
        return Thread.current.raise(default(number)) if handler == "DEFAULT" && number != INTERRUPT

        call(handler, number)
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again
        Scheduler.__send__(:interrupted, e)
        raise
      end

      # What others send to the fiber meanwhile is none of the handler's.
      def raised_by(handler, number)
        return default(number) if handler == "DEFAULT"

        Fiber.scheduler.__send__(:hold_back) { call(handler, number) }
        nil
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised by the caller
        e
      end

      def call(handler, number)
        case handler
        # As if Ruby had raised it: without the methods in here.
        when "DEFAULT" then raise Interrupt, "", caller(4)
        when "EXIT" then exit
        when String then TOPLEVEL_BINDING.eval(handler)
        else handler&.call(number)
        end
      end

      def default(number)
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
