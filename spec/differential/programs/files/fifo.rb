# frozen_string_literal: true

# Opening a FIFO waits for the task that opens its other end

File.mkfifo("fifo")
reader = task { File.open("fifo", &:read) }
settle
File.open("fifo", "w") { |fifo| fifo.write("through") }
say reader.value
