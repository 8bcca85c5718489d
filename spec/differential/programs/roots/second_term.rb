# frozen_string_literal: true

# A program ends by SIGTERM although a task swallows every exception

Thread.new { 20.times { settle && Process.kill(:TERM, Process.pid) } }
scheduled do
  task do
    loop do
      sleep(0)
    rescue Exception
      sleep(0.001)
    end
  end
  sleep(5)
end
