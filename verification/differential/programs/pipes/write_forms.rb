# frozen_string_literal: true

# write, print, puts, <<, putc and printf

reader, writer = IO.pipe
say writer.write("a", :b, 1), writer.print("c"), writer.puts("d", ["e", nil])
say (writer << "f" << 2).equal?(writer), writer.putc("gh"), writer.printf("%02d", 3)
writer.close
say reader.read, attempt { writer.write("x") }, attempt { reader.write("x") }
