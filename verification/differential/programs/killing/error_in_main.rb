# frozen_string_literal: true

# An error that nobody rescues ends the process with status 1

task do
  sleep(0.05)
ensure
  say :ensured
end
settle
raise "the end"
