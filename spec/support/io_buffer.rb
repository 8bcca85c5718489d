# frozen_string_literal: true

# IO::Buffer warns at its first use that it is experimental. This use takes the warning away, so that examples need not
# expect it. Other experimental features still warn.
before = Warning[:experimental]
begin
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = before
end
