# frozen_string_literal: true

# Reads, writes and sleeps are not disturbed by a hundred signals

count = 0
trap("USR1") { count += 1 }
one, other = UNIXSocket.pair
reader = task { other.read(1000).bytesize }
sleeper = task { sleep(0.1) && :slept }
shooter = Thread.new { 100.times { Process.kill(:USR1, Process.pid) && sleep(0.0005) } }
100.times { one.write("x" * 10) && sleep(0.0005) }
shooter.join
say reader.value, sleeper.value, count.positive?
