# frozen_string_literal: true

# Structured concurrency: trees of fibers, cancelling, and what goes with them.
require_relative "structured/checks"
require_relative "structured/structure"
require_relative "structured/task"
require_relative "structured/await"
require_relative "structured/closing"
require_relative "structured/spin"
require_relative "structured/timing"
require_relative "structured/cancel"
require_relative "coordination/guard"
require_relative "wait_group"
require_relative "semaphore"
require_relative "channel"
require_relative "barrier"
require_relative "thread_pool"
require_relative "pool"
require_relative "trap"
