# frozen_string_literal: true

# Several tasks select the same IO, and each is told

reader, writer = IO.pipe
waiters = Array.new(5) { task { IO.select([reader], nil, nil, 20)&.first&.size } }
settle
writer.write("x")
say waiters.map(&:value)
