# frozen_string_literal: true

# IO#read ends with IOError when another task closes the IO

reader, writer = IO.pipe
waiter = task { attempt { reader.read(100) } }
settle
reader.close
say waiter.value, attempt { writer.write("x") }
