# frozen_string_literal: true

# A program that rescues Interrupt around its tasks goes on

begin
  scheduled do
    task { sleep }
    Thread.new { settle && Process.kill(:INT, Process.pid) }
    sleep(3)
    say :nothing
  end
rescue Interrupt => e
  say e.class
end
say :on
