# frozen_string_literal: true

# A program that rescues SignalException around its tasks goes on

begin
  scheduled do
    Thread.new { settle && Process.kill(:TERM, Process.pid) }
    sleep
    say :nothing
  ensure
    say :ensured
  end
rescue SignalException => e
  say e.message
end
say :on
