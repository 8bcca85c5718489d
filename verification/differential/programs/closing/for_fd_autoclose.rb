# frozen_string_literal: true

# Closing a second IO object on the same number closes the descriptor for both

reader, writer = IO.pipe
twin = IO.for_fd(reader.fileno)
say twin.close, attempt { reader.read(1) }, attempt { reader.close }, attempt { writer.write("x") }
