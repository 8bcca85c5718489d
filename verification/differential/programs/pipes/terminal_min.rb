# frozen_string_literal: true

# A terminal with VMIN 0 answers at once or after VTIME

require "io/console"
require "pty"
PTY.open do |_master, terminal|
  say terminal.getch(min: 0), terminal.getch(min: 0, time: 0.1)
  say terminal.raw(min: 0, time: 0.1) { |io| attempt { io.read(1) } }
end
