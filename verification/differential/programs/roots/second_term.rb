# frozen_string_literal: true

# A program ends by SIGTERM although a task swallows every exception

Thread.new { loop { sleep(0.03) && Process.kill(:TERM, Process.pid) } }
scheduled do
  task do
    loop do
      sleep(0)
    rescue Exception
      sleep(0.001)
    end
  end
  sleep
end
