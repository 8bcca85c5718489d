# frozen_string_literal: true

# A pool of threads, for calls that block a thread.
#
#   ruby -Ilib examples/api/pools.rb

require "heddle"

# Stands for a C library that knows no scheduler: Ruby calls no hook in a thread without one.
def blocking_query(number)
  sleep 0.05
  number * number
end

pool = Heddle::ThreadPool.new(threads: 2)

Heddle.run do
  puts "process: #{pool.process { blocking_query(3) }}"

  # Fibers wait for the pool, so all that holds for fibers holds for its work.
  puts "map: #{Heddle.map(0..4) { |number| pool.process { blocking_query(number) } }.join(" ")}"
  puts "limit: #{Heddle.move_on_after(0.01, value: "too late") { pool.process { blocking_query(4) } }}"

  # A thread that is killed is replaced.
  begin
    pool.process { Thread.exit }
  rescue ThreadError
    puts "its thread was killed; the next one gives #{pool.process { blocking_query(5) }}"
  end
end

pool.close
