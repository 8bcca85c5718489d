# frozen_string_literal: true

# Thread#kill of a thread with tasks runs the ensure of each that it has

ensured = Queue.new
ready = Queue.new
thread = elsewhere do
  ready << true
  sleep
ensure
  ensured << :root
end
ready.pop
settle
thread.kill
say thread.join(20) ? :ended : :lives, ensured.size
