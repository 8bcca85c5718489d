# frozen_string_literal: true

# Additions under a Mutex that tasks, threads and schedulers share add up

mutex = Mutex.new
total = 0
add = -> { 50.times { mutex.synchronize { total.then { |before| sleep(0.0001) && (total = before + 1) } } } }
[task(&add), Thread.new(&add), elsewhere(&add), elsewhere { 2.times.map { task(&add) }.each(&:join) }].each(&:join)
say total
