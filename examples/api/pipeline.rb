# frozen_string_literal: true

# A pipeline of fibers: each stage takes from a channel and passes on to the next one. A channel is Enumerable.
#
#   ruby -Ilib examples/api/pipeline.rb

require "heddle"

WORDS = "the heddle lifts each thread of the warp in its turn so that the shuttle can pass".split.freeze

Heddle.run do
  words = Heddle::Channel.new(2)
  lengths = Heddle::Channel.new(2)

  Heddle.spin do
    WORDS.each { |word| words << word }
    words.close
  end
  Heddle.spin do
    words.each { |word| lengths << word.size }
    lengths.close
  end

  puts "first:   #{lengths.first(3).join(" ")}"
  puts "longest: #{lengths.max}"

  # Whichever comes first.
  results = Heddle::Channel.new
  commands = Heddle::Channel.new
  Heddle.spin { sleep(0.01) && (results << :done) }
  channel, value = Heddle::Channel.select(commands, results, timeout: 5)
  puts "#{channel == results ? "result" : "command"}: #{value}"
end
