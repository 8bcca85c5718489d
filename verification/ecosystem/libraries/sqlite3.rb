# frozen_string_literal: true

require "tmpdir"

Ecosystem.library "sqlite3" do
  def connect = SQLite3::Database.new(":memory:").tap { |database| database.busy_handler_timeout = 5000 }

  def works(database)
    database.execute("CREATE TABLE looms (name text)")
    database.transaction { %w[Jacquard Dobby].each { |name| database.execute("INSERT INTO looms VALUES (?)", [name]) } }
    database.create_function("shout", 1) { |function, value| function.result = value.to_s.upcase }
    database.execute("SELECT shout(name) FROM looms ORDER BY name")
  end
end

module Ecosystem
  # Waits for a lock that another connection to the same file holds.
  module LockedDatabase
    # Milliseconds that a wait for the lock may take at most. A busy machine opens the lock late.
    LIMIT = Ecosystem::LIMIT * 1000

    def connect
      path = File.join(Dir.mktmpdir("heddle-ecosystem"), "looms.db")
      holder = SQLite3::Database.new(path)
      holder.execute("CREATE TABLE looms (name text)")
      [SQLite3::Database.new(path).tap { |database| limit(database) }, holder]
    end

    def wait(databases, seconds)
      database, holder = databases
      holder.execute("BEGIN EXCLUSIVE")
      # If the wait is ended, `usable?` commits first.
      Thread.new { sleep(seconds) && holder.transaction_active? && holder.execute("COMMIT") }
      database.execute("SELECT * FROM looms")
    end

    def usable?(databases)
      database, holder = databases
      holder.execute("COMMIT") if holder.transaction_active?
      database.execute("SELECT 7") == [[7]]
    end
  end
end

# On threads, two of these checks hang until their process is killed: an exception that leaves the handler leaves a lock
# of SQLite's to its thread, and the next thread waits for that lock with the GVL. Fibers share one thread.
Ecosystem.library "sqlite3, busy_handler_timeout=", requires: "sqlite3", version: "sqlite3" do
  include Ecosystem::LockedDatabase

  def limit(database) = database.busy_handler_timeout = Ecosystem::LockedDatabase::LIMIT
end

Ecosystem.library "sqlite3, busy_timeout=", requires: "sqlite3", version: "sqlite3",
                                            remark: "holds the GVL: `require \"heddle/offload/sqlite3\"`",
                                            weak: ["waits at once", "10 ms sleeper", "timeout"] do
  include Ecosystem::LockedDatabase

  # The holder's thread cannot run while SQLite waits with the GVL, so the wait fails after this time.
  def limit(database) = database.busy_timeout = offloaded? ? Ecosystem::LockedDatabase::LIMIT : 500
end

Ecosystem.offloaded "sqlite3, busy_timeout=", "sqlite3"
