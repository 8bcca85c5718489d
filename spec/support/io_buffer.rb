# frozen_string_literal: true

# IO::Buffer warns once that it is experimental, which no example is about. As it only warns at its first use, the
# category stays as it was for everything else.
before = Warning[:experimental]
begin
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = before
end
