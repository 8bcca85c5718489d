# frozen_string_literal: true

# Thread#raise ends a thread whose tasks compute

ready = Queue.new
thread = Thread.new do
  attempt do
    scheduled do
      ready << true
      loop { 100.times { Integer.sqrt(10**20) } && sleep(0) }
    end
  end
end
ready.pop
settle
thread.raise(ArgumentError, "from outside")
say thread.join(3) ? thread.value : :computes
