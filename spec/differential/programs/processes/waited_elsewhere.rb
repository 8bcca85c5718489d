# frozen_string_literal: true

# A child that another thread waits for is reaped once

pid = spawn("sleep 0.05; exit 3")
outcomes = [Thread.new { attempt { Process.wait2(pid).last.exitstatus } }, task { attempt { Process.wait2(pid).last.exitstatus } }].map(&:value)
say outcomes.map(&:to_s).sort
