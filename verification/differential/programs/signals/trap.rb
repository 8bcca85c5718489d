# frozen_string_literal: true

# A trap handler runs once for a signal while every task waits

count = 0
done = Queue.new
trap("USR1") { count += 1 }
waiters = Array.new(3) { task { done.pop } }
settle
Process.kill(:USR1, Process.pid)
sleep(0.001) until count.positive?
3.times { |number| done << number }
say count, waiters.map(&:value).sort
