# frozen_string_literal: true

# A shop whose orders keep a connection of the database while they talk to the bank. So the connections are used up, and
# every other page waits for one, too. The page says so. It needs the gems activerecord, puma and sqlite3.
#
#   ruby -Ilib examples/slow/pool_exhausted.rb

require_relative "support/shop"
require "active_record"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "file::memory:?cache=shared", pool: 5)

def ask_the_bank = sleep(0.4)

def with_database(&) = ActiveRecord::Base.connection_pool.with_connection(&)

Shop.open("/orders/#" => 20, "/products/#" => 10) do |path|
  with_database do |connection|
    connection.select_value("SELECT 1")
    # The fault: the bank does not need the connection.
    ask_the_bank if path.start_with?("/orders")
  end
  "Thank you."
end
