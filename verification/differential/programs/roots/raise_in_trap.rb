# frozen_string_literal: true

# An exception that a trap handler raises ends the program's wait

trap("USR1") { raise ArgumentError, "from the handler" }
say attempt {
  scheduled do
    Thread.new { settle && Process.kill(:USR1, Process.pid) }
    sleep
  end
}
