# frozen_string_literal: true

# A killed task runs its `ensure` whatever it waits for

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
  ensured = 0
  victim = task do
    wait.call
  ensure
    ensured += 1
  end
  settle
  victim.kill
  victim.join
  say "#{name} #{ensured} #{victim.alive?}"
end
over << true
holder.join
