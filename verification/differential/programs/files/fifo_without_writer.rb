# frozen_string_literal: true

# Reading an O_NONBLOCK FIFO without a writer returns the end at once

File.mkfifo("fifo")
File.open("fifo", File::RDONLY | File::NONBLOCK) { |fifo| say fifo.read(1), fifo.read, attempt { fifo.readpartial(1) } }
