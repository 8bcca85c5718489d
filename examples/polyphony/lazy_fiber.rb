# frozen_string_literal: true

# A fiber that only waits for messages, and a fiber that sends them.
#
#   ruby -Ilib examples/polyphony/lazy_fiber.rb [seconds between two messages]
#
# Ctrl-C ends the program.

require "heddle/core_ext"

interval = Float(ARGV.fetch(0, 1))
$stdout.sync = true

lazy = spin do
  loop do
    msg = suspend
    puts "Got #{msg}"
  end
end

every(interval) { lazy.schedule("O hi!") }
