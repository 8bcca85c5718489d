# frozen_string_literal: true

# A program with a lost update, and what explores it.
module ExploredBank
  # Its `withdraw` reads, and writes what it has computed from that.
  class Account
    attr_reader :balance

    def initialize(balance) = @balance = balance

    def withdraw(amount)
      balance = @balance
      @balance = balance - amount
    end
  end

  # Two fibers withdraw 10 each from 100.
  WITHDRAWALS = lambda do
    account = Account.new(100)
    Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { account.withdraw(10) } })
    raise "expected 80, got #{account.balance}" unless account.balance == 80
  end

  # @return [Heddle::Testing::Failure, nil]
  def failure(program = WITHDRAWALS, **)
    Heddle::Testing.explore(**, &program)
    nil
  rescue Heddle::Testing::Failure => e
    e
  end

  # @param text [String]
  # @return [String] with the names of files alone: a disturbed run takes its examples from copies in other folders
  def without_folders(text) = text.gsub(%r{[^\s:]+/(?=\w+\.rb\b)}, "")
end
