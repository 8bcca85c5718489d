# frozen_string_literal: true

# An error that nobody rescues ends the process with status 1, although tasks wait

task do
  sleep
ensure
  say :ensured
end
settle
raise "the end"
