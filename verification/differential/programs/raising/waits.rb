# frozen_string_literal: true

# An exception raised into a task ends whatever it waits for, and can be rescued

held = Mutex.new
over = Queue.new
holder = task { held.synchronize { over.pop } }
settle
server = TCPServer.new("127.0.0.1", 0)
waits = {
  sleep: -> { sleep },
  read: -> { IO.pipe { |reader, _| reader.read } },
  gets: -> { IO.pipe { |reader, _| reader.gets } },
  write: -> { IO.pipe { |_, writer| writer.write("y" * 100_000) } },
  accept: -> { server.accept },
  pop: -> { Queue.new.pop },
  push: -> { SizedQueue.new(1).push(1).push(2) },
  lock: -> { held.lock },
  condition: -> { Mutex.new.then { |mutex| mutex.synchronize { ConditionVariable.new.wait(mutex) } } },
  select: -> { IO.pipe { |reader, _| IO.select([reader]) } },
  join: -> { Thread.new { sleep }.join },
  wait: -> { Process.wait(spawn("sleep", "60")) },
  timeout: -> { Timeout.timeout(60) { sleep } }
}
waits.each do |name, wait|
  victim = task { attempt(&wait) }
  settle
  victim.raise(ArgumentError, "poke")
  say "#{name} #{victim.value}"
end
over << true
holder.join
