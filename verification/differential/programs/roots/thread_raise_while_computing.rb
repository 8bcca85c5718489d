# frozen_string_literal: true

# Thread#raise ends a thread whose tasks compute

ready = Queue.new
thread = Thread.new do
  attempt do
    scheduled do
      loop { 100.times { Integer.sqrt(10**20) } && sleep(0) && (ready << true) }
    end
  end
end
ready.pop
thread.raise(ArgumentError, "from outside")
say thread.join(20) ? thread.value : :computes
