# frozen_string_literal: true

# An exception that a trap handler raises ends the wait of the program

trap("USR1") { raise ArgumentError, "from the handler" }
Thread.new { settle && Process.kill(:USR1, Process.pid) }
say attempt { sleep(2) }
