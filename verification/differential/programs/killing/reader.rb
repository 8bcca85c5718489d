# frozen_string_literal: true

# Bytes that come after a reader was killed go to the next reader

reader, writer = IO.pipe
victim = task { reader.read(10) }
settle
victim.kill
victim.join
writer.write("for the next")
say reader.readpartial(20)
