# frozen_string_literal: true

# Kernel#exit in the program ends it, although tasks wait

task do
  sleep
ensure
  say :ensured
end
settle
exit(3)
