# frozen_string_literal: true

# A task joins threads, and sees their values and errors

gate = Queue.new
slow = Thread.new { gate.pop }
failing = Thread.new { raise ArgumentError, "in the thread" }.tap { |thread| thread.report_on_exception = false }
killed = Thread.new { sleep }
say task { slow.join(0.001) }.value
gate << :value
say task { slow.value }.value, task { attempt { failing.join } }.value
killed.kill
say task { killed.join.equal?(killed) }.value, task { killed.value }.value, attempt { Thread.current.join }
