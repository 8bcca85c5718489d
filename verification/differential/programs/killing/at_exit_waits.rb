# frozen_string_literal: true

# An at_exit block may wait, and start tasks or threads of its own

at_exit do
  sleep(0.01)
  reader, writer = IO.pipe
  thread = Thread.new { reader.read }
  writer.write("late")
  writer.close
  say thread.value
end
say :main
