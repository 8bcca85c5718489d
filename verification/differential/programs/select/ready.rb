# frozen_string_literal: true

# IO.select returns what is ready

reader, writer = IO.pipe
say IO.select([reader], [writer], nil, 1).map(&:size)
writer.write("x")
say IO.select([reader], nil, nil, 1).map(&:size), IO.select([reader], [writer], [reader]).map(&:size)
