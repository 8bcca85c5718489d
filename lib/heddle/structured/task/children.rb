# frozen_string_literal: true

module Heddle
  class Task
    # A task's children: they are told to end when it ends, and it waits for their end.
    module Children
      # @return [Integer] the number of the parent's scopes that were open when this task started
      def depth = @depth || 0

      # @return [Array<Fiber>] the children that have started and not ended
      def child_fibers = @children.keys.filter_map(&:fiber)

      # A child is about to start.
      def add(child)
        child.within(@enclosing&.size)
        @children[child] = true
      end

      # A child has ended.
      def remove(child)
        @children.delete(child) || @enclosing&.each { |children| children.delete(child) }
        @scheduler.unblock(self, @fiber) if @ending && @children.empty?
      end

      # Begins a scope: until {#end_scope}, {#end_children} concerns the children that are added from now on.
      #
      # @return [Hash] the children until now, for {#end_scope}
      def begin_scope
        (@enclosing ||= []).push(@children)
        @children = {}
        @enclosing.last
      end

      # Ends a scope. Children that have not ended, because the wait for them was broken off, end with the scope around
      # it.
      def end_scope(children)
        return unless children

        drop_received(@enclosing.size)
        @enclosing.delete_if { |other| other.equal?(children) }
        @children = children.merge!(@children)
      end

      # @return [Boolean] whether another fiber waits for the task's end, or will: a parent does at its own end. The
      #   wait of a root is not counted, as it takes place when the scheduler closes.
      def awaited?
        return false if ended?

        !@waits.empty? || !(@parent.nil? || @parent.fiber.nil? || @parent.fiber.blocking?)
      end

      # Tells the children to end, running their `ensure`, and waits for that. Only exceptions that concern the whole
      # thread interrupt the wait.
      #
      # @return [Exception, nil] the first error of a child that failed in the meantime
      def end_children
        return take_late_error if @children.empty?

        @ending = true
        @scheduler.__send__(:defer_raises) do
          stop_children
          wait_for_children
        end
        take_late_error
      ensure
        @ending = false
      end

      # Sets {#depth}.
      def within(depth)
        @depth = depth
      end

      private

      def stop_children
        # Iterates over a copy, because children remove themselves.
        @children.keys.each(&:stop) # rubocop:disable Style/HashEachMethods
      end

      def forget_children
        [@children, *@enclosing].each(&:clear)
      end

      def wait_for_children
        @scheduler.block(self, nil) until @children.empty?
      rescue SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised when the children have ended
        @late_error ||= e
        retry
      end

      def take_late_error
        @late_error.tap { @late_error = nil }
      end
    end
    private_constant :Children
  end
end
