# frozen_string_literal: true

module Heddle
  module RailsSupport
    # Rails' lock for reloading: requests share it, and a reload excludes them. Rails tells the holders apart by their
    # threads. The fibers of a thread would count as one holder: classes would be unloaded under a running request, and
    # a fiber that lends its share would lend those of all others, which then get lost.
    #
    # Under a Heddle scheduler the holders are what Rails' state belongs to: fibers. A fiber that a request has started
    # enters without waiting for a pending reload, because that reload waits for the request, which may wait for the
    # fiber.
    module Interlock
      # Stands for `Thread` in the methods of ShareLock.
      module Holder
        # @api private
        # @return [Fiber, Thread]
        def self.current = fiber? ? ActiveSupport::IsolatedExecutionState.context : ::Thread.current

        # @api private
        # @return [Boolean] whether a Heddle scheduler runs the calling fiber
        def self.fiber? = ::Fiber.current_scheduler.is_a?(Scheduler)
      end

      # What `ActionDispatch::DebugLocks` asks a holder for.
      FiberHolder = Struct.new(:fiber) do
        # @api private
        # @return [String, false] as `Thread#status`
        def status = { running: "run", runnable: "run", waiting: "sleep" }.fetch(Native.state(fiber), false)

        # @api private
        # @return [Array<String>, nil]
        def backtrace = fiber.backtrace
      end
      private_constant :FiberHolder

      # The fiber that holds a share, in the storage of the fibers that it starts.
      KEY = :heddle_interlock_holder
      private_constant :KEY

      # @return [void]
      def self.install
        lock = ActiveSupport::Concurrency::ShareLock
        return if lock.ancestors.include?(self)

        lock.const_set(:Thread, Holder) if part.install
      end

      # @return [AdapterPart]
      def self.part
        path = "ActiveSupport::Concurrency::ShareLock"
        RailsSupport.part(
          "a reload in development may unload classes under a running request",
          uses: %w[@sharing @waiting @exclusive_thread #wait_for(_)].map { |name| "#{path}#{name}" },
          overrides: { path => self }, only: %i[start_sharing stop_sharing]
        )
      end
      private_class_method :part

      # @api private
      def start_sharing
        return if enter_beside_holder

        super
        Fiber[KEY] = Holder.current if Holder.fiber?
      end

      # @api private
      def stop_sharing
        super
        Fiber[KEY] = nil if Fiber[KEY].equal?(Holder.current) && !@sharing.key?(Holder.current)
      end

      # @api private
      # @yieldparam holders [Hash] what each holder does
      def raw_state
        super do |holders|
          yield holders.transform_keys { |holder| holder.is_a?(Fiber) ? FiberHolder.new(holder) : holder }
        end
      end

      private

      # Shares beside the fiber that has started this one, or that has started the one which has. If that fiber holds no
      # share any more, this fiber must wait as any other does.
      #
      # @return [Boolean] whether it shares now
      def enter_beside_holder
        holder = Fiber[KEY]
        return false if holder.nil? || holder.equal?(Holder.current)

        synchronize do
          # A holder that waits has lent its share, and takes it back.
          next false unless @sharing.key?(holder) || @waiting.key?(holder)

          wait_for(:start_sharing) { @exclusive_thread && ![holder, Holder.current].include?(@exclusive_thread) }
          @sharing[Holder.current] += 1
          true
        end
      end
    end
    private_constant :Interlock
  end
end
