# frozen_string_literal: true

# Two tasks may close the same IO while a third one reads it

reader, _writer = IO.pipe
waiter = task { attempt { reader.read(1) } }
settle
closers = Array.new(2) { task { attempt { reader.close } } }
say waiter.value, closers.map(&:value), reader.closed?, attempt { reader.fileno }
