# frozen_string_literal: true

# The end of PTY.open's block in a thread closes the terminal under a task that reads, which raises IOError

require "pty"

opened = Queue.new
go = Queue.new
closer = elsewhere { PTY.open { |master, _| opened.push(master) && go.pop } }
master = opened.pop
number = master.fileno
waiter = task { attempt { master.readpartial(100) } }
settle
go.push(:closed)
say closer.value, waiter.value, intact?(retake(number))
