# frozen_string_literal: true

# Each task's system has its own result

say Array.new(8) { |number| task { system("sleep 0.01; exit #{number}").then { |fine| [fine, $CHILD_STATUS.exitstatus] } } }.map(&:value)
