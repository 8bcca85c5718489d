# frozen_string_literal: true

module Heddle # :nodoc:
  # What fibers say that they wait for. It is an instance variable of the fiber, so it costs nothing at a switch.
  module WaitNames
    VARIABLE = :@heddle_waiting_for
    # What a fiber says: the text, and what is called for the details.
    Said = Struct.new(:what, :detail) do
      # @return [String] with the details, if they can be had
      def to_s
        details = detail&.call
        details ? "#{what} (#{details})" : what
      rescue StandardError, ScriptError, SystemStackError
        # The details are the library's, which may be in the middle of a change.
        what
      end
    end
    private_constant :VARIABLE, :Said

    class << self
      # @return [#to_s, nil]
      def of(fiber) = fiber.instance_variable_get(VARIABLE)

      # @param what [String] frozen
      # @param detail [#call, nil]
      # @yield what may wait
      # @return [Object] the block's value
      def within(what, detail)
        fiber = Fiber.current
        previous = of(fiber)
        Native.label_account(fiber, what) if Accounting.begun?
        begin
          fiber.instance_variable_set(VARIABLE, detail ? Said.new(what, detail) : what)
          yield
        ensure
          fiber.instance_variable_set(VARIABLE, previous)
          Native.label_account(fiber, previous.is_a?(Said) ? previous.what : previous) if Accounting.begun?
        end
      end
    end
  end
  private_constant :WaitNames

  class << self
    # Says what the current fiber waits for while the block runs. For libraries: a pool's wait is a
    # `ConditionVariable#wait` to Ruby, but the user wants to know which pool it is. {Heddle.fibers}, {Heddle.dump} and
    # the dashboard show the text for a fiber that waits, and add up the time by it. Any thread may call this, with any
    # scheduler or none.
    #
    # Fibers that wait for the same thing should say the same text: what differs belongs into `detail`.
    #
    # @param what [#to_s] what the block may wait for
    # @param detail [#call, nil] returns more about it, or nil. Called when a report needs it, on any thread, also in
    #   signal handlers: it must not wait, nor take a lock. What it raises is ignored
    # @yield what may wait
    # @return [Object] the block's value
    # @raise [ArgumentError] without a block, or for an empty text
    # @raise [TypeError] if `what` cannot be converted to a String, or `detail` has no method `call`
    # @example
    #   Heddle.waiting_for("a permit", detail: -> { "#{limit.used} of #{limit.size} in use" }) { limit.acquire }
    def waiting_for(what, detail: nil, &block)
      ArgumentChecks.block(block, "Heddle.waiting_for")
      if detail && !detail.respond_to?(:call)
        raise TypeError, "Heddle.waiting_for: detail: must have a method call, as a Proc has, not be #{detail.inspect}"
      end

      what = Names.convert(what)
      unless what && !what.empty?
        raise ArgumentError, "Heddle.waiting_for: must say what the fiber waits for, not #{what.inspect}"
      end

      WaitNames.within(what, detail, &block)
    end
  end
end
