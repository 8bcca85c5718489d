# frozen_string_literal: true

# IO#each_line ends with IOError between two lines when the IO is closed

reader, writer = IO.pipe
lines = []
waiter = task { attempt { reader.each_line { |line| lines << line } } }
writer.write("one\ntwo\nth")
settle
reader.close
say waiter.value, lines
