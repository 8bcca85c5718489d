# frozen_string_literal: true

module Heddle
  module RailsSupport
    # Tells which connection pools of Active Record have fewer connections than there will be fibers.
    module ConnectionPools
      module_function

      # @param fibers [Integer] how many fibers may ask for a connection at the same time
      # @return [Array<String>] a message for each pool that is too small
      def warnings(fibers)
        ActiveRecord::Base.connection_handler.connection_pool_list(:all).filter_map do |pool|
          describe(pool, fibers) if pool.size < fibers
        end
      end

      def describe(pool, fibers)
        config = pool.db_config
        <<~TEXT
          Heddle: the connection pool of #{config.name.inspect} has #{pool.size} connections, and up to #{fibers} fibers may ask for one.
          A fiber that finds none waits, and after #{config.checkout_timeout} s raises ActiveRecord::ConnectionTimeoutError. Either raise
          `pool:` in config/database.yml, as far as the database's own limit allows, or hold connections for a short
          time only: `with_connection { |connection| … }` gives the connection back at the end of its block, while
          `connection` and `lease_connection` keep it until the request ends. Queries of models give it back at once.
          `config.active_record.permanent_connection_checkout = :deprecated` finds the calls that keep it. If fewer
          fibers query at the same time, say so by `config.heddle.fibers = #{pool.size}`; nil turns this check off.
        TEXT
      end
      private_class_method :describe
    end
    private_constant :ConnectionPools
  end
end
