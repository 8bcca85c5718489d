# frozen_string_literal: true

module Heddle # :nodoc:
  # The signal of {Heddle.dump_on}.
  module DumpSignal
    # Signals that the system does not allow to be handled, or that Ruby keeps to itself.
    RESERVED = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM CHLD CLD].freeze
    ADVICE = "take one that the program does not use, such as \"PWR\" or \"USR1\""
    THREAD = "Heddle.dump_on"
    private_constant :RESERVED, :ADVICE, :THREAD

    @handler = ->(_) { DumpSignal.start }

    class << self
      # @param signal [String, Symbol, Integer]
      # @param io [#write]
      def set(signal, io)
        number = number_of(signal)
        # The program may have set a handler since, which then stays.
        remove if number == @number
        expect_free(signal, number)
        remove
        # A forked child inherits the handler.
        Patches.install
        @io = io
        SignalHandlers.ruby_trap(number, @handler)
        @number = number
        Native.watch_dump_signal(number)
      end

      # Restores the signal's default, unless the program has set another handler since.
      def remove
        return unless (number = @number)

        @number = nil
        found = SignalHandlers.ruby_trap(number, "DEFAULT")
        SignalHandlers.ruby_trap(number, found) unless found.equal?(@handler)
        SignalHandlers.reclaim(number)
      end

      # The signal has arrived. A handler runs in whichever fiber is running, where an error of the IO would end that
      # fiber, and a wait would stop it. So a thread writes the dump. While one is being written, no other begins.
      def start
        return if @thread&.alive?

        io = @io
        @thread = WorkContext.thread(THREAD) do
          Thread.current.report_on_exception = false
          Native.dump_begins
          Heddle.dump(io)
        end
      rescue ThreadError
        # There is no memory for a thread, so the dump is lost.
        nil
      end

      # This process is a forked child, which has inherited the handler, but no native thread.
      def forked
        Native.watch_dump_signal(@number) if @number
      rescue SystemCallError
        # There are no descriptors left. The child has the signal all the same.
        nil
      end

      private

      def number_of(signal)
        name = signal.is_a?(Symbol) ? signal.name : signal
        unless name.is_a?(String) || name.is_a?(Integer)
          raise TypeError, "Heddle.dump_on: a signal is a String, a Symbol or an Integer, not #{signal.inspect}"
        end

        number = name.is_a?(String) ? Signal.list[name.delete_prefix("SIG")] : name
        refuse(signal, "is no signal of this system") unless Signal.list.value?(number)
        refuse(signal, "is reserved") if RESERVED.include?(Signal.signame(number))
        number
      end

      def expect_free(signal, number)
        handler = Native.signal_handler(number)
        refuse(signal, "has a handler already (#{handler})") if handler
      end

      def refuse(signal, reason)
        raise ArgumentError, "Heddle.dump_on: #{signal.inspect} #{reason}; #{ADVICE}"
      end
    end
  end
  private_constant :DumpSignal

  class << self
    # Makes a signal write {dump} to `io`. There is one such signal: a further call replaces it, and nil ends it. Then
    # the signal does again what it does by default. If the program sets another handler by `trap`, that handler stays.
    # Forked children inherit the signal.
    #
    # The dump is written by a thread of its own, so an `io` that raises or waits disturbs no fiber: the dump, or its
    # rest, is lost. While a dump is being written, further signals do nothing.
    #
    # The dump begins at the main thread's next safe point, also while a fiber computes. While a thread is in C code
    # that does not release the GVL, no Ruby code can run. If the dump has not begun 0.5 s after the signal, a native
    # thread writes a line to descriptor 2 that says so, and one for each native thread of the process: its id and name,
    # whether it runs, and how much CPU time it has used since the signal (on Linux). The dump follows when the C code
    # returns.
    #
    # @param signal [String, Symbol, Integer, nil] with or without `SIG`; nil ends it
    # @param io [#write]
    # @return [nil]
    # @raise [ArgumentError] for a signal that does not exist, that Ruby or the system reserves, or that has a handler
    #   other than the default
    # @raise [TypeError] for a signal of another type, or if `io` has no method `write`
    # @raise [SystemCallError] if the system has no threads or descriptors left
    # @example
    #   Heddle.dump_on("PWR") # kill -PWR 4711
    def dump_on(signal, io = $stderr)
      raise TypeError, "Heddle.dump_on: #{io.inspect} has no method write, as $stderr has" unless io.respond_to?(:write)

      signal.nil? ? DumpSignal.remove : DumpSignal.set(signal, io)
      nil
    end
  end
end
