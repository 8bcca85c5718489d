# frozen_string_literal: true

# Several threads run tasks beside each other, and talk by pipes

reader, writer = IO.pipe
reading = Thread.new { scheduled { reader.read } }
writing = Array.new(4) { |number| Thread.new { scheduled { 10.times { writer.write(number.to_s) && sleep(0.001) } } } }
writing.each(&:join)
writer.close
say reading.value.chars.tally.sort
