# frozen_string_literal: true

# IO.console(:close) closes the terminal under a task that reads, which raises IOError

require "io/console"
require "pty"

# Ruby 3.3 and 3.4 close the terminal in C, and tell a scheduler nothing: see docs/internals/closing.md.
raise LoadError, "Ruby #{RUBY_VERSION} tells a scheduler nothing of this close" if RUBY_VERSION < "4.0"

# Makes a terminal that of the calling process and its session.
SET_TERMINAL = 0x540e

_master, slave = PTY.open
child = fork do
  Process.setsid
  slave.ioctl(SET_TERMINAL, 0)
  scheduled do
    console = IO.console
    waiter = task { attempt { console.readpartial(100) } }
    settle
    say IO.console(:close), waiter.value, console.closed?, IO.console.equal?(console)
  end
end
say Process.wait2(child).last.success?
