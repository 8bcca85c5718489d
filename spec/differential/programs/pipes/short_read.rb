# frozen_string_literal: true

# A read gets what there is when the writer closes

reader, writer = IO.pipe
waiter = task { [reader.read(100), reader.read(100), reader.read, attempt { reader.readpartial(1) }, reader.gets, reader.eof?] }
settle
writer.write("short")
settle
writer.close
say waiter.value
