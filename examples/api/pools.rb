# frozen_string_literal: true

# Two pools of threads with the same interface: one for calls that block a thread, one for fibers on several threads.
#
#   ruby -Ilib examples/api/pools.rb

require "heddle"

# Stands for a C library that knows no scheduler: Ruby calls no hook in a thread without one.
def blocking_query(number)
  sleep 0.05
  number * number
end

threads = Heddle::ThreadPool.new(threads: 2)
fibers = Heddle::Pool.new(threads: 2)

Heddle.run do
  puts "process: #{threads.process { blocking_query(3) }}"

  [threads, fibers].each do |pool|
    job = pool.go(4) { |number| blocking_query(number) }
    puts "#{pool.class}: #{job.await}, ended: #{job.ended?}"
  end

  jobs = Array.new(5) { |number| fibers.go { blocking_query(number) } }
  puts "await_all: #{fibers.await_all(*jobs).join(" ")}"

  # A job that waits for its own jobs keeps no thread.
  total = fibers.go { fibers.await_all(*Array.new(10) { |number| fibers.go { number } }).sum }
  puts "nested: #{total.await}"

  # Nothing is kept of jobs that are not awaited; the error of one is raised in `wait`.
  fibers.go { raise ArgumentError, "not awaited" }
  begin
    fibers.wait
  rescue ArgumentError => e
    puts "wait: #{e.message}"
  end

  # A thread that is killed is replaced.
  lost = threads.go { Thread.exit }
  begin
    lost.await
  rescue ThreadError
    puts "its thread was killed; the next one gives #{threads.process { blocking_query(5) }}"
  end
end

[threads, fibers].each(&:close)
