# frozen_string_literal: true

# Tasks fork and wait for their children at the same time

statuses = Array.new(8) do |number|
  task do
    pid = fork { sleep(0.02) && exit!(number) }
    Process.wait2(pid).last.exitstatus
  end
end
say statuses.map(&:value)
