# frozen_string_literal: true

# Zlib streams over pipes that tasks write and read

require "zlib"
reader, writer = IO.pipe(binmode: true)
text = "some text " * 20_000
zipping = task { Zlib::GzipWriter.wrap(writer) { |gzip| gzip.write(text) } }
say Zlib::GzipReader.wrap(reader, &:read) == text, zipping.join.alive?
