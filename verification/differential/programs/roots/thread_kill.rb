# frozen_string_literal: true

# Thread#kill runs each `ensure` of a thread once

order = Queue.new
ready = Queue.new
thread = Thread.new do
  scheduled do
    ready << true
    sleep
  ensure
    order << :inner
  end
ensure
  order << :outer
end
ready.pop
settle
thread.kill
say thread.join(20) ? :ended : :lives, Array.new(order.size) { order.pop }
