# frozen_string_literal: true

# IO#read ends with IOError when another thread closes the IO

reader, writer = IO.pipe
waiter = task { attempt { reader.read(100) } }
Thread.new { settle && reader.close }.join
say waiter.value, attempt { writer.write("x") }
