# frozen_string_literal: true

module Heddle
  # Says for which pool a fiber waits that waits for a connection: ActiveRecord's, or one of the gem connection_pool. It
  # uses their private methods and variables. Where one of them is missing, such a fiber waits for a
  # `ConditionVariable#wait`.
  module PoolWaits
    # How many holders are named.
    HOLDERS = 3
    private_constant :HOLDERS

    # Of `ActiveRecord::ConnectionAdapters::ConnectionPool::Queue`, which is asked with a time limit only if no
    # connection is free.
    module ConnectionQueue
      # Takes a connection from the queue, or waits for one.
      def poll(timeout = nil)
        return super unless timeout

        pool = @lock
        WaitNames.within("a connection of ActiveRecord's pool", -> { PoolWaits.use_of(pool) }) { super }
      end
    end

    # Of `ConnectionPool::TimedStack`.
    module TimedStack
      # Takes a connection from the stack, or waits for one.
      def pop(...)
        return super unless empty?

        WaitNames.within("a connection of a ConnectionPool", -> { "#{max - length} of #{max} in use" }) { super }
      end
    end

    class << self
      # Called when a scheduler is made: the libraries may be loaded at any time before.
      def install
        install_active_record if loaded?("ActiveRecord", "ConnectionAdapters::ConnectionPool::Queue")
        install_connection_pool if loaded?("ConnectionPool", "TimedStack")
      end

      # @return [String, nil] `20 of 20 in use, by GET /orders, Report and 18 more`
      def use_of(pool)
        # The pool's own methods take its lock.
        connections = pool.instance_variable_get(:@connections).to_a
        owners = connections.filter_map(&:owner)
        "#{owners.size} of #{pool.size} in use#{", by #{names(owners)}" if owners.any?}"
      end

      private

      # A program's tests may put an object in a library's place.
      def loaded?(library, name)
        return false unless Object.const_defined?(library)

        found = Object.const_get(library)
        found.is_a?(Module) && found.const_defined?(name)
      end

      def install_active_record
        @active_record ||= AdapterPart.new( # rubocop:disable Naming/MemoizedInstanceVariableName -- of two
          "activerecord", ::ActiveRecord.version,
          right_with: "8.1.3",
          without: "a fiber that waits for a connection of ActiveRecord's pool is shown without the pool's name",
          uses: ["ActiveRecord::ConnectionAdapters::ConnectionPool#size()",
                 "ActiveRecord::ConnectionAdapters::AbstractAdapter#owner()"],
          overrides: { "ActiveRecord::ConnectionAdapters::ConnectionPool::Queue" => ConnectionQueue }
        ).tap(&:install)
      end

      def install_connection_pool
        @connection_pool ||= AdapterPart.new( # rubocop:disable Naming/MemoizedInstanceVariableName -- of two
          "connection_pool", ::ConnectionPool::VERSION,
          right_with: "3.0.2",
          without: "a fiber that waits for a connection of a ConnectionPool is shown without the pool's name",
          uses: ["ConnectionPool::TimedStack#max()", "ConnectionPool::TimedStack#length()",
                 "ConnectionPool::TimedStack#empty?()"],
          overrides: { "ConnectionPool::TimedStack" => TimedStack }
        ).tap(&:install)
      end

      def names(owners)
        named = owners.first(HOLDERS).map { |owner| (owner.is_a?(Fiber) && Names.of(owner)) || owner.class.name }
        named = named.map { |name| Text.shortened(name) }
        more = owners.size - named.size
        more.positive? ? "#{named.join(", ")} and #{more} more" : named.join(", ")
      end
    end
  end
  private_constant :PoolWaits
end
