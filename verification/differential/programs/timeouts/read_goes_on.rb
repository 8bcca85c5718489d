# frozen_string_literal: true

# A read after one that timed out gets all the bytes, in order

reader, writer = IO.pipe
say attempt { Timeout.timeout(0.02) { reader.read(6) } }
writer.write("abcdef")
say reader.readpartial(10)
writer.write("half")
say attempt { Timeout.timeout(0.02) { reader.gets } }
writer.write(" a line\n")
say reader.gets
