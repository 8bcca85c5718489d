# frozen_string_literal: true

# IO#timeout= ends read, gets, getc and write

reader, writer = IO.pipe
reader.timeout = 0.02
writer.timeout = 0.02
[-> { reader.read(1) }, -> { reader.gets }, -> { reader.getc },
 -> { writer.write("x" * 100_000) }, -> { reader.timeout = -1 }, -> { reader.timeout }].each { |io| say attempt(&io) }
