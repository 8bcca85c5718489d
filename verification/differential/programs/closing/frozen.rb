# frozen_string_literal: true

# A frozen IO can be closed, but neither by its sides nor by `reopen`

require "socket"

reader, writer = IO.pipe.each(&:freeze)
say error_of { reader.reopen(writer) }
say error_of { writer.close_write }, writer.closed?
say attempt { writer.close }, error_of { reader.read }, attempt { reader.close }, reader.closed?

left, right = UNIXSocket.pair
left.freeze
say error_of { left.close_read }, error_of { left.close_write }, attempt { left.close }, attempt { right.read }

pipe = IO.popen("cat", "r+").freeze
say error_of { pipe.close_write }, attempt { pipe.close }, pipe.closed?
