# frozen_string_literal: true

# A program that rescues Interrupt goes on

begin
  Process.kill(:INT, Process.pid)
  sleep(1)
  say :nothing
rescue Interrupt => e
  say e.class
end
say :on
