# frozen_string_literal: true

# A child that another thread waits for is reaped once

pid = spawn("sleep 0.05; exit 3")
wait = -> { attempt { Process.wait2(pid).last.exitstatus } }
say [Thread.new(&wait), task(&wait)].map(&:value).map(&:to_s).sort
