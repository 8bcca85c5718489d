# frozen_string_literal: true

# SIGTERM ends the program although a task computes within `rescue Exception`

computing = Queue.new
rounds = 0
task do
  loop do
    5000.times { Integer.sqrt(10**20) }
    computing << true
    sleep(0)
  rescue Exception
    rounds += 1
  end
end
Thread.new { computing.pop && Process.kill(:TERM, Process.pid) }
begin
  sleep
  say :survived
ensure
  say :ended
end
