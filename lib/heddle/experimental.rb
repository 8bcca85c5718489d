# frozen_string_literal: true

# Ruby says once in a process that IO::Buffer is experimental, whoever uses it. It uses one itself to call `io_read`, so
# a program would be told of something that it never named.
experimental = Warning[:experimental]
begin
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = experimental
end
