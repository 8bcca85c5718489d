# frozen_string_literal: true

require "socket"
require_relative "heddle/version"
require_relative "heddle/extension"

unless Heddle.supported?
  require_relative "heddle/unsupported"
  return
end

# The scheduler, and what starts it.
require_relative "heddle/experimental"
require_relative "heddle/argument_checks"
require_relative "heddle/cooperation"
require_relative "heddle/scheduler"
require_relative "heddle/fiber_body"
require_relative "heddle/yielding_fiber"
require_relative "heddle/work_context"
require_relative "heddle/carry_context"
require_relative "heddle/unit_of_work"
require_relative "heddle/thread_variables"
require_relative "heddle/run"
require_relative "heddle/host_thread"

# What keeps a part of Heddle's own code from being interrupted, and what a forked child makes anew.
require_relative "heddle/coordination/guard"
require_relative "heddle/coordination/per_process"

# hooks/: the parts of the scheduler's hooks that are written in Ruby. The extension calls them.
require_relative "heddle/hooks/blocking_work"
require_relative "heddle/hooks/helper_thread"
require_relative "heddle/hooks/process_wait"
require_relative "heddle/hooks/select_now"

# observability/: what the fibers do.
require_relative "heddle/observability/subscription"
require_relative "heddle/observability/text"
require_relative "heddle/observability/names"
require_relative "heddle/observability/accounting"
require_relative "heddle/observability/name_total"
require_relative "heddle/observability/name_reading"
require_relative "heddle/observability/name_report"
require_relative "heddle/observability/queue_origins"
require_relative "heddle/observability/wait_names"
require_relative "heddle/observability/backtraces"
require_relative "heddle/observability/rare_collections"
require_relative "heddle/observability/descriptors"
require_relative "heddle/observability/mutex_holders"
require_relative "heddle/observability/wait_description"
require_relative "heddle/observability/snapshots"
require_relative "heddle/observability/fiber_info"
require_relative "heddle/observability/deadlocks"
require_relative "heddle/observability/dump"
require_relative "heddle/observability/dump_signal"

# What Heddle writes to $stderr.
require_relative "heddle/reports"

# host_names/: looking up host names, and connecting to them.
require_relative "heddle/host_names/lookup"
require_relative "heddle/host_names/happy_eyeballs"
require_relative "heddle/host_names/tcp_connect"

# metrics/: what a scheduler counts.
require_relative "heddle/metrics/stats"

# patches/: each file changes one of Ruby's own classes, once a scheduler opens.
require_relative "heddle/patches"
require_relative "heddle/patches/fiber"
require_relative "heddle/patches/file_lock"
require_relative "heddle/patches/host_names"
require_relative "heddle/patches/io_close"
require_relative "heddle/patches/io_pwrite" if RUBY_VERSION < "4.0"
require_relative "heddle/patches/mutex_sleep"
require_relative "heddle/patches/process_fork"
require_relative "heddle/patches/pty_open" if RUBY_VERSION < "4.0"
require_relative "heddle/patches/signal_handlers"
require_relative "heddle/patches/handle_interrupt"
require_relative "heddle/patches/thread_raise"
require_relative "heddle/patches/thread_status"
require_relative "heddle/patches/timeout"

# stalls/: reporting fibers that keep their thread.
require_relative "heddle/stalls"

# traces/: recording what the fibers do for a while.
require_relative "heddle/traces"

# structured/: trees of fibers, cancellation and time.
require_relative "heddle/structured/context"
require_relative "heddle/structured/children"
require_relative "heddle/structured/tree_node"
require_relative "heddle/structured/task"
require_relative "heddle/structured/task_wait"
require_relative "heddle/structured/scope"
require_relative "heddle/structured/scheduler_close"
require_relative "heddle/structured/spin"
require_relative "heddle/structured/await"
require_relative "heddle/structured/timing"
require_relative "heddle/structured/cancel"
require_relative "heddle/structured/trap"
require_relative "heddle/structured/map"

# coordination/: objects that fibers and threads of any scheduler share.
require_relative "heddle/coordination/waiter"
require_relative "heddle/coordination/waiters"
require_relative "heddle/coordination/semaphore"
require_relative "heddle/coordination/barrier"

# pools/: work for other threads.
require_relative "heddle/pools/workers"
require_relative "heddle/pools/thread_pool"

# integrations/: what other libraries need to know of Heddle, or Heddle of them.
require_relative "heddle/integrations"
