# frozen_string_literal: true

# Pipes and sockets whose buffers are full.
module Pipes
  CHUNK = "x" * (1 << 16)

  module_function

  # Writes until the next write would wait.
  def fill(io)
    nil until io.write_nonblock(CHUNK, exception: false) == :wait_writable
  end
end
