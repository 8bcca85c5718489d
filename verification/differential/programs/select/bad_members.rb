# frozen_string_literal: true

# IO.select refuses what is no IO

say attempt { IO.select([Object.new], nil, nil, 0) }.gsub(/0x\h+/, ""), attempt { IO.select(1) }
say attempt { IO.select([nil], nil, nil, 0) }
Wrapper = Struct.new(:to_io)
reader, writer = IO.pipe
writer.write("x")
wrapped = Wrapper.new(reader)
say IO.select([wrapped], nil, nil, 1).first.first.equal?(wrapped)
