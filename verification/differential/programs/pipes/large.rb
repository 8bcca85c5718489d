# frozen_string_literal: true

# A megabyte goes through a pipe whole

data = bytes(1_000_000, 2)
reader, writer = IO.pipe(binmode: true)
writing = task { writer.write(data).tap { writer.close } }
say checksum(reader.read) == checksum(data), writing.value
