# frozen_string_literal: true

# Three programs with defects that few runs show, and the schedules that show them.
#
#   ruby -Ilib examples/explore.rb [bank|cache|pool]      all by default
#
# The bank loses a withdrawal. The cache lets two fibers compute the same value, which is called a stampede. The pool
# hands out a connection that it has no more. Each report ends with the command that replays the run:
# HEDDLE_SEED=1 ruby -Ilib examples/explore.rb bank

require "heddle/testing"

module ExploreExample
  # Reads, and writes what it has computed from that.
  class Account
    attr_reader :balance

    def initialize(balance) = @balance = balance

    def withdraw(amount)
      balance = @balance
      @balance = balance - amount
    end
  end

  # Computes a value if it has none, and stores it.
  class Cache
    attr_reader :computed

    def initialize
      @values = {}
      @computed = 0
    end

    def fetch(key)
      return @values[key] if @values.key?(key)

      @computed += 1
      @values[key] = "the value of #{key}"
    end
  end

  # A pool from which all fibers get the same connection while a test has pinned one, so that they see its transaction.
  #
  # Active Record 7.2.2 had this defect (issue 53980 of rails/rails): `checkout` looked whether a connection was pinned,
  # waited for a lock, and then used the pinned connection, which another thread had unpinned meanwhile. The changelog
  # of 7.2.3 (28 October 2025) has the correction: 'Fix a potential race condition with system tests and transactional
  # fixtures'.
  class Pool
    # A connection to no database.
    class Connection
      def verify = self
    end

    def initialize
      @lock = Mutex.new
      @pinned = nil
    end

    def pin = @lock.synchronize { @pinned = Connection.new }

    def unpin = @lock.synchronize { @pinned = nil }

    def checkout
      return Connection.new unless @pinned

      @lock.synchronize { @pinned.verify }
    end
  end

  module_function

  def bank
    Heddle::Testing.explore do
      account = Account.new(100)
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { account.withdraw(10) } })
      raise "expected 80, got #{account.balance}" unless account.balance == 80
    end
  end

  def cache
    Heddle::Testing.explore(strategy: :exhaustive, preemptions: 1) do
      cache = Cache.new
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { cache.fetch(:key) } })
      raise "computed #{cache.computed} times" unless cache.computed == 1
    end
  end

  def pool
    Heddle::Testing.explore do
      pool = Pool.new
      pool.pin
      Heddle.await_all(Heddle.spin(name: "request") { pool.checkout }, Heddle.spin(name: "test") { pool.unpin })
    end
  end

  def run(names)
    names.each do |name|
      public_send(name)
    rescue Heddle::Testing::Failure => e
      puts e.message, ""
    end
  end
end

ExploreExample.run(ARGV.empty? ? %w[bank cache pool] : ARGV & %w[bank cache pool])
