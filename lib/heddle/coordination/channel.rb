# frozen_string_literal: true

module Heddle
  # A bounded queue for several producers and consumers. Any thread may use it, with any scheduler or none. A fiber can
  # wait for several channels at once; the idea is that of Go's channels and its `select`.
  #
  # Without {Channel.select}, Ruby's SizedQueue does the same, and is faster.
  #
  # It is Enumerable. Each of those methods takes items, and waits for more until the channel is closed and empty, or
  # until it has what it needs, as `first` and `find` do.
  #
  # @example
  #   Heddle.run do
  #     numbers = Heddle::Channel.new(8)
  #     Heddle.spin { 100.times { |n| numbers << n }; numbers.close }
  #     numbers.each { |n| puts n }
  #   end
  class Channel
    include Enumerable

    # Waits for the first of several channels that has an item, and takes the item. If several have one, the first in
    # the list counts.
    #
    # @param channels [Array<Channel>]
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @return [Array(Channel, Object), nil] the channel and the item; nil if all channels are closed and empty, or after
    #   the timeout
    # @raise [ArgumentError] without channels, or for a timeout that is negative, infinite or NaN
    # @raise [TypeError] for an argument that is not a Channel, or a timeout that is not a number
    # @example
    #   channel, value = Heddle::Channel.select(commands, results, timeout: 5.0)
    def self.select(*channels, timeout: nil)
      raise ArgumentError, "Heddle::Channel.select needs at least one channel" if channels.empty?

      channels.each do |channel|
        unless channel.is_a?(Channel)
          raise TypeError,
                "Heddle::Channel.select: #{channel.inspect} is not a Heddle::Channel"
        end
      end
      ArgumentChecks.seconds(timeout, "Heddle::Channel.select") if timeout
      Selection.new(channels, timeout).call
    end

    # @param capacity [Integer] the number of items that fit; further calls of {#push} wait
    # @raise [ArgumentError] if the number is less than one
    # @raise [TypeError] if the number is not an Integer
    def initialize(capacity = 1)
      @capacity = ArgumentChecks.count(capacity, "Heddle::Channel.new")
      @items = []
      @closed = false
      @guard = Guard.new
      @readers = Waiters.new
      @writers = Waiters.new
    end

    # @return [Integer] the number of items that fit
    attr_reader :capacity

    # @return [Integer] the number of items in the channel
    def size = @items.size

    # @return [Boolean]
    def empty? = @items.empty?

    # @return [Boolean]
    def closed? = @closed

    # Adds an item, and waits for room if need be.
    #
    # @param item [Object]
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @return [self, nil] nil after the timeout
    # @raise [ClosedQueueError] if the channel is closed, or is closed while this waits
    # @raise [ArgumentError] for a timeout that is negative, infinite or NaN
    # @raise [TypeError] for a timeout that is not a number
    # @example
    #   channel.push(line, timeout: 1.0) or warn "dropped #{line}"
    def push(item, timeout: nil)
      ArgumentChecks.seconds(timeout, "Heddle::Channel#push") if timeout
      retry_until(@writers, timeout) { put(item) } && self
    end
    alias << push

    # Takes the oldest item, and waits for one if need be.
    #
    # @param timeout [Float, Integer, Rational, nil] seconds; nil is for ever
    # @return [Object, nil] nil if the channel is closed and empty, or after the timeout
    # @raise [ArgumentError] for a timeout that is negative, infinite or NaN
    # @raise [TypeError] for a timeout that is not a number
    # @example
    #   line = channel.pop(timeout: 1.0)
    def pop(timeout: nil)
      ArgumentChecks.seconds(timeout, "Heddle::Channel#pop") if timeout
      retry_until(@readers, timeout) { take }&.first
    end

    # Takes items until the channel is closed and empty.
    #
    # @yieldparam item [Object]
    # @return [self, Enumerator] an Enumerator without a block
    # @example
    #   channel.each { |line| puts line }
    def each
      return enum_for unless block_given?

      while (taken = retry_until(@readers, nil) { take }) && !taken.empty?
        yield taken.first
      end
      self
    end

    # Refuses further items. Items in the channel can still be taken.
    #
    # @return [self]
    def close
      @guard.synchronize do
        @closed = true
        [@readers, @writers].each { |waiters| waiters.take_all.each(&:wake) }
      end
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} size=#{size} capacity=#{capacity}#{" closed" if closed?}>"
    end

    # @api private
    # @return [Array, nil] an Array with the item, which is empty if the channel is closed and empty. nil if there is no
    #   item now: then the waiter is enqueued, and woken when that changes.
    def take_or_wait(waiter)
      @guard.synchronize { take.tap { |taken| @readers << waiter unless taken } }
    end

    # @api private
    # Removes a waiter that waits no longer. If it may have been woken for an item, another waiter is woken.
    def leave(waiter)
      @guard.synchronize { forget(@readers, waiter) }
    end

    private

    # Calls the block until it succeeds. Waits in between.
    #
    # @yieldreturn [Object, nil] nil if it has to wait
    # @return [Object, nil] the block's value; nil after the timeout
    def retry_until(waiters, timeout)
      due = Waiter.due(timeout)
      waiter = nil
      until (result = @guard.synchronize { yield || ((waiters << (waiter = Waiter.new)) && nil) })
        return unless waiter.wait_until(due)
      end
      result
    ensure
      @guard.synchronize { forget(waiters, waiter) } if waiter && !result
    end

    def put(item)
      raise ClosedQueueError, "Heddle::Channel#push: the channel is closed" if @closed
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

      # The waiter has been woken and does not act on it. The next one may.
      waiters.shift&.wake if waiters.equal?(@readers) ? @items.any? : @items.size < @capacity
    end

    # One call of {Channel.select}.
    class Selection
      # @param channels [Array<Channel>]
      # @param timeout [Numeric, nil] seconds
      def initialize(channels, timeout)
        @channels = channels.uniq
        @asked = []
        @due = Waiter.due(timeout)
      end

      # @return [Array(Channel, Object), nil] see {Channel.select}
      def call
        while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue a StopIteration that is raised in this fiber
          begin
            waiter = Waiter.new
            found = try(waiter)
            return found unless found == :nothing_yet
            return unless waiter.wait_until(@due)
          ensure
            @asked.each { |channel| channel.leave(waiter) }
          end
        end
      end

      private

      # Takes an item from the first channel that has one, or enqueues the waiter at all of them.
      #
      # @return [Array, nil, :nothing_yet] nil if all channels are closed and empty
      def try(waiter)
        @asked = []
        open = @channels.reject do |channel|
          @asked << channel
          taken = channel.take_or_wait(waiter)
          # Empty, if the channel is closed and has no item. The item may be nil or false.
          return [channel, taken.first] if taken && !taken.empty?

          taken
        end
        open.empty? ? nil : :nothing_yet
      end
    end
    private_constant :Selection
  end
end
