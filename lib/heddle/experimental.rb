# frozen_string_literal: true

# Ruby warns once per process that IO::Buffer is experimental, when the first one is made. Ruby itself makes one to call
# the hook `io_read`, so a program would see the warning without having used the class. Making one here, with the
# warning off, uses up the warning.
experimental = Warning[:experimental]
begin
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = experimental
end
