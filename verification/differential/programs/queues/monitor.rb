# frozen_string_literal: true

# Monitors are reentrant, and their conditions wake tasks

require "monitor"
monitor = Monitor.new
condition = monitor.new_cond
ready = false
waiter = task { monitor.synchronize { monitor.synchronize { condition.wait_until { ready } } } || :woken }
settle
monitor.synchronize { (ready = true) && condition.signal }
say waiter.value, monitor.synchronize { condition.wait(0.01) }.class, attempt { monitor.exit }
say attempt { condition.signal }
