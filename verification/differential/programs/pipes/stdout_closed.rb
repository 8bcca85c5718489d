# frozen_string_literal: true

# Writing to a closed $stdout raises IOError in the task alone

copy = $stdout.dup
$stdout.close
say_to = ->(text) { copy.syswrite("#{text}\n") }
say_to.call(task { attempt { $stdout.puts("lost") } }.value)
