# frozen_string_literal: true

# IO.select and IO#wait take and refuse the limits that they do on a thread

reader, writer = IO.pipe
[0, 0.001, 1r / 1000, -1, "1", Float::NAN, Object.new].each do |limit|
  say attempt { IO.select([reader], nil, nil, limit) }.to_s.gsub(/0x\h+/, "0x")
end
[0, 0.001, "1"].each { |limit| say attempt { reader.wait_readable(limit) } }
say writer.wait_writable(0) == writer, writer.wait(0, :w) == writer, reader.wait(0)
say reader.wait(IO::READABLE, 0)
