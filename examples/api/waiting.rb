# frozen_string_literal: true

# Start, wait, end: one fiber, several, the first of several, and their errors.
#
#   ruby -Ilib examples/api/waiting.rb

require "heddle"

def fetch(page, seconds)
  sleep seconds
  "page #{page}"
end

# The first error is raised when the others have ended.
def fail_together
  failing = Heddle.spin { sleep(0.01) && raise(ArgumentError, "no such page") }
  waiting = Heddle.spin do
    sleep
  ensure
    puts "the other one is stopped"
  end
  Heddle.await_all(waiting, failing)
rescue ArgumentError => e
  puts e.message
end

Heddle.run do
  puts Heddle.await(Heddle.spin { fetch(1, 0.05) })

  fibers = [0.05, 0.02].each_with_index.map { |seconds, index| Heddle.spin { fetch(index + 2, seconds) } }
  puts Heddle.await_all(*fibers).join(", ")

  slow = Heddle.spin { fetch(4, 10) }
  quick = Heddle.spin { fetch(5, 0.01) }
  puts Heddle.await(Heddle.select(slow, quick))
  Heddle.terminate(slow)
  puts "the slow one gives #{Heddle.await(slow).inspect}"

  fail_together

  group = Heddle::WaitGroup.new
  3.times { |number| group.go { fetch(number, 0.01) } }
  puts "#{group.count} under way"
  group.wait
  puts "#{group.count} left"

  barrier = Heddle::Barrier.new
  %w[warp weft].each { |name| barrier.spin { sleep(0.01) && name } }
  puts barrier.await_all.join(" and ")
end
