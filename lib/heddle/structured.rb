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
