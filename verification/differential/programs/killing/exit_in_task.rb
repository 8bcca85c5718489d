# frozen_string_literal: true

# Kernel#exit in a task ends the process with its status

leaving = task { settle && exit(7) }
begin
  leaving.value
ensure
  say :ensured
end
