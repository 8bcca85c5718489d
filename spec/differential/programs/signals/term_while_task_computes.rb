# frozen_string_literal: true

# SIGTERM ends the program although a task computes within `rescue Exception`

rounds = 0
task do
  loop do
    5000.times { Integer.sqrt(10**20) }
    sleep(0)
  rescue Exception
    rounds += 1
  end
end
Thread.new { settle && Process.kill(:TERM, Process.pid) }
begin
  sleep(3)
  say :survived
ensure
  say :ended
end
