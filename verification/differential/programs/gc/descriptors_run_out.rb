# frozen_string_literal: true

# A program that has run out of descriptors gets Errno::EMFILE and goes on

limit = Process.getrlimit(:NOFILE)
reader, writer = IO.pipe
waiter = task { reader.read(2) }
settle
open = Dir.children("/proc/self/fd").map(&:to_i).max
Process.setrlimit(:NOFILE, open + 10, limit.last)
hoard = []
error = error_of { loop { hoard << File.open(IO::NULL) } }
say error, error_of { IO.pipe }, error_of { TCPSocket.new("127.0.0.1", 1) }, error_of { spawn("true") }
writer.write("ok")
say waiter.value
hoard.each(&:close)
say system("true"), IO.pipe { |input, output| output.write("y") && input.read(1) }
