# frozen_string_literal: true

# IO#reopen by a path, an IO and a mode leaves the bytes in the right files

io = File.open("first", "w+")
io.write("one")
io.reopen("second", "w+")
io.write("two")
other = File.open("third", "w+")
io.reopen(other)
io.write("three")
io.flush
say %w[first second third].map { |name| File.read(name) }
