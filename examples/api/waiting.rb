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
  puts Heddle.spin { fetch(1, 0.05) }.await

  fibers = [0.05, 0.02].each_with_index.map { |seconds, index| Heddle.spin { fetch(index + 2, seconds) } }
  puts Heddle.await_all(*fibers).join(", ")

  slow = Heddle.spin { fetch(4, 10) }
  quick = Heddle.spin { fetch(5, 0.01) }
  puts quick.await
  puts "the slow one gives #{slow.stop.await.inspect}"
  puts Heddle.race(-> { fetch(6, 10) }, -> { fetch(7, 0.01) })

  fail_together

  puts Heddle.map(8..10, limit: 2) { |page| fetch(page, 0.01) }.join(", ")

  barrier = Heddle::Barrier.new
  %w[warp weft].each { |name| barrier.spin { sleep(0.01) && name } }
  puts barrier.await_all.join(" and ")
end
