# frozen_string_literal: true

# IO#reopen of an IO that a task reads: later reads come from the new file

one_reader, one_writer = IO.pipe
other_reader, other_writer = IO.pipe
one_writer.write("old")
say one_reader.readpartial(3)
one_reader.reopen(other_reader)
waiter = task { attempt { one_reader.readpartial(10) } }
settle
other_writer.write("new")
say waiter.value, attempt { one_writer.write("x") }
