# frozen_string_literal: true

# Handlers run on the main thread, although others are busy

where = Queue.new
trap("USR1") { where << (Thread.current == Thread.main) }
busy = Thread.new { sleep }
settle
Process.kill(:USR1, Process.pid)
say where.pop(timeout: 20)
busy.kill
