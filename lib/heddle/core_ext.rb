# frozen_string_literal: true

require "heddle"
require_relative "patches/core_ext"
require_relative "patches/root_sleep"

# With `require "heddle/core_ext"`, the methods of {Heddle} under the names that Polyphony gives them: methods of Fiber
# and private methods of every object. `require "heddle"` alone does not add them. As in Polyphony, the main fiber may
# call all of them: on a thread without a scheduler, the first call sets one.
#
# @example
#   require "heddle/core_ext"
#
#   clock = spin { every(1.0) { puts Time.now } }
#   after(10.0) { clock.terminate }
#   clock.await
unless defined?(Polyphony)
  # The name under which Polyphony's programs rescue cancellation.
  module Polyphony
    # What `cancel_after` raises.
    Cancel = Heddle::TimeoutError
  end
end
