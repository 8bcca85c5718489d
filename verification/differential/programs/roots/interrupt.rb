# frozen_string_literal: true

# A program that rescues Interrupt around its tasks goes on

begin
  scheduled do
    task { sleep }
    Thread.new { settle && Process.kill(:INT, Process.pid) }
    sleep
    say :nothing
  end
rescue Interrupt => e
  say e.class
end
say :on
