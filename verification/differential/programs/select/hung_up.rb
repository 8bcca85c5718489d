# frozen_string_literal: true

# IO.select tells of a pipe whose writers are gone

reader, writer = IO.pipe
waiter = task { IO.select([reader], nil, nil, 20)&.first&.size }
settle
writer.close
say waiter.value, reader.read
