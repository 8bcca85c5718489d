# frozen_string_literal: true

# A pseudoterminal's ends talk to each other

require "pty"
PTY.open do |master, terminal|
  master.puts("typed")
  say terminal.gets
  waiter = task { master.readpartial(100) }
  settle
  terminal.write("answer")
  say waiter.value.include?("typed")
end
