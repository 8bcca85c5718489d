# frozen_string_literal: true

# Lines that several tasks write to one pipe are whole

reader, writer = IO.pipe
writing = Array.new(5) { |number| task { 100.times { writer.write("line of #{number} #{"x" * 50}\n") } } }
reading = task { reader.readlines(chomp: true).tally.sort }
writing.each(&:join)
writer.close
say reading.value
