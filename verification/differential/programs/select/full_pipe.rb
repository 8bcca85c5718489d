# frozen_string_literal: true

# IO.select waits for room in a full pipe

reader, writer = IO.pipe
loop { break if writer.write_nonblock("x" * 4096, exception: false) == :wait_writable }
say IO.select(nil, [writer], nil, 0.01)
waiter = task { IO.select(nil, [writer], nil, 20)&.map(&:size) }
settle
reader.readpartial(65_536)
say waiter.value
