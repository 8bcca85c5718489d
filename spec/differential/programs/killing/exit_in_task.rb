# frozen_string_literal: true

# Kernel#exit in a task ends the process with its status

task { settle && exit(7) }
begin
  sleep(5)
ensure
  say :ensured
end
