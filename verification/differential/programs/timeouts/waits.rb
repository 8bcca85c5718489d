# frozen_string_literal: true

# Timeout.timeout ends each kind of wait

held = Mutex.new
over = Queue.new
holder = task { held.synchronize { over.pop } }
settle
server = TCPServer.new("127.0.0.1", 0)
udp = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
# The reader must not be collected, as a write would then raise Errno::EPIPE.
unread, full = IO.pipe
loop do
  break if full.write_nonblock("x" * 1000, exception: false) == :wait_writable
end
waits = {
  sleep: -> { sleep },
  read: -> { IO.pipe { |reader, _| reader.read } },
  gets: -> { IO.pipe { |reader, _| reader.gets } },
  write: -> { full.write("y" * 100_000) },
  accept: -> { server.accept },
  recv: -> { udp.recv(1) },
  pop: -> { Queue.new.pop },
  push: -> { SizedQueue.new(1).push(1).push(2) },
  lock: -> { held.lock },
  condition: -> { Mutex.new.then { |mutex| mutex.synchronize { ConditionVariable.new.wait(mutex) } } },
  select: -> { IO.pipe { |reader, _| IO.select([reader]) } },
  join: -> { Thread.new { sleep }.join },
  wait: -> { Process.wait(spawn("sleep", "60")) },
  system: -> { system("sleep", "60") },
  popen: -> { `sleep 60` },
  readable: -> { IO.pipe { |reader, _| reader.wait_readable } },
  copy: -> { IO.pipe { |reader, _| IO.copy_stream(reader, IO::NULL) } }
}
waits.each do |name, wait|
  say "#{name} #{attempt { Timeout.timeout(0.02) { wait.call } }}"
end
over << true
holder.join
unread.close
