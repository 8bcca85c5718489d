# frozen_string_literal: true

# Mixes everything that a preemption could break, at random, and checks that every fiber ended as it should, that each
# `ensure` ran once, and that the sums are right.
#
#   ruby -Ilib verification/stress/preemption.rb          # a minute
#   SEED=7 SECONDS=10 ruby -Ilib verification/stress/preemption.rb
#   SEED=7 ROUNDS=2 SIZE=20 ruby -Ilib verification/stress/preemption.rb
#
# PREEMPT=yielding|all and TICKER=signal|timerfd replace a random choice. THREADS is the number of threads with a
# scheduler, SIZE the amount of work in each, SHOTS the number of Thread#raise, and KILLS the number of Thread#kill.
# HEDDLE_BACKEND chooses the backend.

require "English"
require "heddle"
require_relative "thread_kills"
require_relative "thread_raises"
require_relative "world"

# The whole program.
class Stress
  SECONDS = 60
  AMOUNTS = { "THREADS" => 3, "SIZE" => 30, "SHOTS" => 20, "KILLS" => 3 }.freeze
  # Seconds for one round. A round that takes longer hangs.
  LIMIT = 30

  def initialize(environment)
    @seed = Integer(environment.fetch("SEED") { Random.new_seed % (1 << 32) })
    @rounds = environment["ROUNDS"]&.to_i
    @seconds = Float(environment.fetch("SECONDS", SECONDS))
    @threads, @size, @shots, @kills = AMOUNTS.map { |name, usual| Integer(environment.fetch(name, usual)) }
    @preempt = environment["PREEMPT"]&.to_sym
    @ticker = environment["TICKER"]&.to_sym
    @random = Random.new(@seed)
    @counts = Hash.new(0)
  end

  def succeeds?
    puts "SEED=#{@seed}"
    $stdout.flush
    trap("USR1") { @counts[:traps] += 1 }
    finish = now + @seconds
    round = 0
    while @rounds ? round < @rounds : now < finish
      return false unless round_is_clean?(round += 1)
    end
    puts "#{round} rounds: #{@counts.sort.map { |kind, count| "#{kind} #{count}" }.join(", ")}"
    true
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def round_is_clean?(round)
    over = Thread::Queue.new
    watch = Thread.new { give_up(round) unless over.pop(timeout: LIMIT) }
    complaints = play
    over.push(true)
    watch.join
    return true if complaints.empty?

    report(round, complaints)
    false
  end

  # Plays a round. The last of its worlds runs on the main thread.
  def play
    shared = World::Shared.new
    @worlds = Array.new(@threads) { world(shared) }
    interrupters = [ThreadRaises.new(shots: @shots, ticker:), ThreadKills.new(kills: @kills, ticker:)]
    threads = [*@worlds[..-2], *interrupters].map { |runner| Thread.new { runner.run } }
    Process.kill(:USR1, Process.pid)
    @worlds.last.run
    threads.each(&:join)
    count
    [*@worlds.map(&:ledger), *interrupters].flat_map(&:complaints) + shared_complaints(shared)
  end

  def count
    @worlds.each { |world| @counts.merge!(world.ledger.counts) { |_, one, other| one + other } }
  end

  def world(shared)
    World.new(@random.rand(1 << 32), shared, size: @size, preempt: @preempt, ticker:)
  end

  def ticker
    @ticker || %i[signal timerfd].sample(random: @random)
  end

  def shared_complaints(shared)
    fibers = @worlds.sum { |world| world.ledger.entries.count { |entry| entry.kind == :shared } }
    expected = fibers * Locking::ADDITIONS
    shared.total == expected ? [] : ["shared: #{shared.total} instead of #{expected}"]
  end

  def report(round, complaints)
    warn "round #{round} of SEED=#{@seed} went wrong:", *complaints.map { |complaint| "  #{complaint}" }
  end

  # Ends the process at once, as a thread that hangs can't be unwound.
  def give_up(round)
    left = @worlds.flat_map { |world| world.ledger.entries.select { |entry| entry.fiber.nil? || entry.fiber.alive? } }
    report(round, ["not over after #{LIMIT} s", *left.map { |entry| "left: #{entry.kind} #{entry.fiber.inspect}" }])
    Thread.list.each { |thread| warn thread.inspect, *thread.backtrace }
    exit!(1)
  end
end

exit(Stress.new(ENV).succeeds?)
