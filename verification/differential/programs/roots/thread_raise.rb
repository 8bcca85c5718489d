# frozen_string_literal: true

# Thread#raise ends what a thread does with its tasks, and can be rescued there

ready = Queue.new
thread = Thread.new do
  attempt do
    scheduled do
      ready << true
      sleep
    end
  end
end
ready.pop
settle
thread.raise(ArgumentError, "from outside")
say thread.join(20) ? thread.value : :waits
