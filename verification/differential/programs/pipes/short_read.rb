# frozen_string_literal: true

# A read gets what there is when the writer closes

reader, writer = IO.pipe
waiter = task do
  [reader.read(100), reader.read(100), reader.read, error_of { reader.readpartial(1) }, reader.gets, reader.eof?]
end
settle
writer.write("short")
settle
writer.close
say waiter.value
