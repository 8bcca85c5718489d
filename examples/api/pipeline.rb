# frozen_string_literal: true

# A pipeline of fibers over Ruby's queues: each stage takes from one and passes on to the next one.
#
#   ruby -Ilib examples/api/pipeline.rb

require "heddle"

WORDS = "the heddle lifts each thread of the warp in its turn so that the shuttle can pass".split.freeze

Heddle.run do
  words = SizedQueue.new(2)
  lengths = SizedQueue.new(2)

  Heddle.spin do
    WORDS.each { |word| words << word }
    words.close
  end
  Heddle.spin do
    while (word = words.pop)
      lengths << word.size
    end
    lengths.close
  end

  puts "first:   #{Array.new(3) { lengths.pop }.join(" ")}"
  puts "longest: #{Enumerator.produce { lengths.pop || raise(StopIteration) }.max}"

  # Events of several sources, each with the name of its source.
  events = Queue.new
  Heddle.spin { sleep(0.01) && (events << %i[result done]) }
  source, value = events.pop(timeout: 5)
  puts "#{source}: #{value}"
end
