# frozen_string_literal: true

# Every task that reads an IO gets IOError when it is closed

reader, _writer = IO.pipe
waiters = Array.new(10) { task { attempt { reader.read(1) } } }
settle
reader.close
say waiters.map(&:value).tally
