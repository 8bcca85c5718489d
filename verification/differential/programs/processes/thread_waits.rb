# frozen_string_literal: true

# Threads and tasks run programs beside each other

threads = Array.new(3) { |number| Thread.new { Process.wait2(spawn("sleep 0.02; exit #{number}")).last.exitstatus } }
tasks = Array.new(3) { |number| task { Process.wait2(spawn("sleep 0.02; exit #{number}")).last.exitstatus } }
say threads.map(&:value), tasks.map(&:value)
