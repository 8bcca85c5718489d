# frozen_string_literal: true

# The end of a block that an IO was opened for closes the IO under a task that reads, which raises IOError

require "pty"

server = TCPServer.new("127.0.0.1", 0)
blocks = {
  "IO.pipe" => ->(&block) { IO.pipe { |reader, _| block.call(reader) } },
  "UNIXSocket.pair" => ->(&block) { UNIXSocket.pair { |one, _| block.call(one) } },
  "TCPSocket.open" => ->(&block) { TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| block.call(socket) } },
  "PTY.open" => ->(&block) { PTY.open { |master, _| block.call(master) } }
}
blocks.each do |name, open|
  number = nil
  waiter = nil
  open.call do |io|
    number = io.fileno
    waiter = task { io.readpartial(100) }
    settle
  end
  pairs = retake(number)
  # The end of UNIXSocket.pair's block closes the peer first, so the task may have read the end.
  say name, error_of { waiter.value }.sub("EOFError", "IOError"), intact?(pairs)
  pairs.flatten.each(&:close)
end
