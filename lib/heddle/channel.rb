# frozen_string_literal: true

module Heddle
  # A bounded queue that several producers and consumers use, from any thread and scheduler, and of which several can be
  # waited for at once.
  #
  # If nobody waits for several at once, Ruby's SizedQueue does the same, and faster.
  #
  # @example
  #   Heddle.run do
  #     numbers = Heddle::Channel.new(8)
  #     Heddle.spin { 100.times { |n| numbers << n }; numbers.close }
  #     numbers.each { |n| puts n }
  #   end
  class Channel
    # Waits for the first of several channels that has something.
    #
    # @param channels [Array<Channel>]
    # @param timeout [Numeric, nil] seconds; nil is for ever
    # @return [Array(Channel, Object), nil] which one, and what it had; nil if all are closed and empty, or the time was
    #   up. Of several that have something the first in the list is taken.
    # @raise [ArgumentError] without channels, or for a time that is negative or infinite
    # @raise [TypeError] for what is no channel, or no number
    # @example
    #   channel, value = Heddle::Channel.select(commands, results, timeout: 5)
    def self.select(*channels, timeout: nil)
      raise ArgumentError, "Heddle::Channel.select needs a channel at least" if channels.empty?

      channels.each do |channel|
        unless channel.is_a?(self)
          raise TypeError,
                "Heddle::Channel.select: #{channel.inspect} is not a Heddle::Channel"
        end
      end
      Checks.seconds(timeout, "Heddle::Channel.select") if timeout
      Selection.new(channels, timeout).call
    end

    # @param capacity [Integer] how much there may be in it before who pushes has to wait
    # @raise [ArgumentError, TypeError] if it is less than one, or no Integer
    def initialize(capacity = 1)
      @capacity = Checks.count(capacity, "Heddle::Channel.new")
      @items = []
      @closed = false
      @guard = Guard.new
      @readers = []
      @writers = []
    end

    # @return [Integer]
    attr_reader :capacity

    # @return [Integer] how much is in it
    def size = @items.size

    # @return [Boolean]
    def empty? = @items.empty?

    # @return [Boolean]
    def closed? = @closed

    # Puts something in, when there is room.
    #
    # @param item [Object]
    # @param timeout [Numeric, nil] seconds; nil is for ever
    # @return [self, nil] nil if the time was up
    # @raise [ClosedQueueError] if the channel is closed, or is being closed meanwhile
    # @raise [ArgumentError, TypeError] for a time that is negative, infinite, or no number
    def push(item, timeout: nil)
      Checks.seconds(timeout, "Heddle::Channel#push") if timeout
      attempt(@writers, timeout) { put(item) } && self
    end
    alias << push

    # Takes something out, when there is something.
    #
    # @param timeout [Numeric, nil] seconds; nil is for ever
    # @return [Object, nil] nil if the channel is closed and empty, or the time was up
    # @raise [ArgumentError, TypeError] for a time that is negative, infinite, or no number
    def pop(timeout: nil)
      Checks.seconds(timeout, "Heddle::Channel#pop") if timeout
      attempt(@readers, timeout) { take }&.first
    end

    # Takes out what comes, until the channel is closed and empty.
    #
    # @yieldparam item [Object]
    # @return [self, Enumerator] an Enumerator without a block
    def each
      return enum_for unless block_given?

      while (taken = attempt(@readers, nil) { take }) && !taken.empty?
        yield taken.first
      end
      self
    end

    # Lets nothing more in. What is in it can be taken out.
    #
    # @return [self]
    def close
      @guard.synchronize do
        @closed = true
        [@readers, @writers].each { |waiters| waiters.each(&:wake).clear }
      end
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size} capacity=#{capacity}#{" closed" if closed?}>"
    end

    # @api private
    # @return [Array, nil] what there is, in an Array, which is empty if nothing will ever come; nil if there is nothing
    #   now, and then the waiter is woken when that changes
    def take_or_wait(waiter)
      @guard.synchronize { take.tap { |taken| @readers << waiter unless taken } }
    end

    # @api private
    # The waiter is not going to take anything. If it has been woken for it, another one is.
    def leave(waiter)
      @guard.synchronize { forget(@readers, waiter) }
    end

    private

    # @yieldreturn [Object, nil] nil if it has to be waited for
    # @return [Object, nil] what the block returned; nil if the time was up
    def attempt(waiters, timeout)
      due = timeout && (Structure.now + timeout)
      waiter = nil
      until (result = @guard.synchronize { yield || ((waiters << (waiter = Waiter.new)) && nil) })
        return unless wait(waiter, waiters, due)
      end
      result
    end

    def wait(waiter, waiters, due)
      woken = waiter.wait(due && [due - Structure.now, 0].max)
    ensure
      @guard.synchronize { forget(waiters, waiter) } unless woken
    end

    def put(item)
      raise ClosedQueueError, "channel closed" if @closed
      return if @items.size >= @capacity

      @items << item
      @readers.shift&.wake
      true
    end

    def take
      return (@closed ? [] : nil) if @items.empty?

      @writers.shift&.wake
      [@items.shift]
    end

    def forget(waiters, waiter)
      return if waiters.delete(waiter)

      # Woken for what it doesn't do: the next one may.
      waiters.shift&.wake if waiters.equal?(@readers) ? @items.any? : @items.size < @capacity
    end
  end
end

require_relative "channel/selection"
