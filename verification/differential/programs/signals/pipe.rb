# frozen_string_literal: true

# Writing to a pipe without a reader raises Errno::EPIPE and sends no signal

reader, writer = IO.pipe
reader.close
say attempt { writer.write("x") }, task { attempt { writer.syswrite("x") } }.value
