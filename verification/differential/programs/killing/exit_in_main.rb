# frozen_string_literal: true

# Kernel#exit in the program ends it with its status

task do
  sleep(0.05)
ensure
  say :ensured
end
settle
exit(3)
