# frozen_string_literal: true

# Thread#raise reaches a thread that waits in its own block

ready = Queue.new
thread = elsewhere do
  ready << true
  attempt { sleep }
end
ready.pop
settle
thread.raise(ArgumentError, "from outside")
say thread.join(3) ? attempt { thread.value } : :waits
