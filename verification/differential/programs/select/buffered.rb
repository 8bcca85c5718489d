# frozen_string_literal: true

# IO.select knows of bytes that are in the read buffer

reader, writer = IO.pipe
writer.write("line one\nline two\n")
say reader.gets, IO.select([reader], nil, nil, 20)&.map(&:size), reader.gets
say IO.select([reader], nil, nil, 0.01)
reader.ungetc("u")
say IO.select([reader], nil, nil, 20)&.map(&:size)
