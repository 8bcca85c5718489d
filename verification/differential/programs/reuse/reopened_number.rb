# frozen_string_literal: true

# A number that IO#reopen gives another file serves the new file only

one, other = UNIXSocket.pair
one.write("p" * 50)
say other.read(50).bytesize
file = File.open("file", "w+")
other.reopen(file) rescue say $!.class
third = IO.pipe
plain = File.open("other", "w+")
plain.reopen(third[0])
third[1].write("through")
say plain.readpartial(20)
