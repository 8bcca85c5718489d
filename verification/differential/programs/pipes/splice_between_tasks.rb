# frozen_string_literal: true

# Bytes that go through a chain of tasks come out whole

ends = Array.new(6) { IO.pipe(binmode: true) }
links = ends.each_cons(2).map { |(input, _), (_, output)| task { IO.copy_stream(input, output).tap { output.close } } }
data = bytes(200_000, 4)
source = task { ends.first.last.write(data).tap { ends.first.last.close } }
say checksum(ends.last.first.read) == checksum(data), links.map(&:value), source.value
