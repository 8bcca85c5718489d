# frozen_string_literal: true

# Threads and tasks run programs beside each other

threads = Array.new(3) { |number| Thread.new { system("sleep 0.02; exit #{number}") && $CHILD_STATUS.exitstatus || $CHILD_STATUS.exitstatus } }
tasks = Array.new(3) { |number| task { system("sleep 0.02; exit #{number}") ; $CHILD_STATUS.exitstatus } }
say threads.map(&:value), tasks.map(&:value)
