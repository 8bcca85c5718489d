# frozen_string_literal: true

# A thread that a task joins is killed by another task

thread = Thread.new { sleep }
waiter = task { thread.join && :joined }
settle
task { thread.kill }.join
say waiter.value, thread.status
