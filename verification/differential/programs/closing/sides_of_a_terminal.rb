# frozen_string_literal: true

# close_read or close_write of a terminal closes both sides at once, and a task that reads raises IOError

require "pty"

%i[close_read close_write].each do |side|
  { "readpartial" => ->(io) { io.readpartial(100) }, "gets" => :gets.to_proc }.each do |name, wait|
    master, slave = PTY.open
    number = master.fileno
    waiter = task { wait.call(master) }
    settle
    master.__send__(side)
    pairs = retake(number)
    say "#{side} #{name}", master.closed?, error_of { waiter.value }, intact?(pairs)
    [*pairs.flatten, slave].each(&:close)
  end
end
