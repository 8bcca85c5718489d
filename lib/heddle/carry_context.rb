# frozen_string_literal: true

module Heddle # :nodoc:
  class << self
    # Lets work take a library's context along from the fiber that starts it: the current span of a tracer, the tags of
    # a logger. Fibers, pools, executors, `Heddle::Offload` and all else that starts work call the block when work is
    # started, in the fiber that starts it. The jobs of the Active Job adapter and of Sidekiq take nothing along.
    #
    # Call it once for each library, when the program starts.
    #
    # @yield captures the context
    # @yieldreturn [#call, nil] runs the block that it is given in that context, in whichever fiber or thread the work
    #   runs; nil if there is nothing to carry
    # @return [Subscription] its `unsubscribe` ends that for work that is started later
    # @raise [ArgumentError] without a block
    # @example OpenTelemetry: the spans of fibers have a parent
    #   Heddle.carry_context do
    #     context = OpenTelemetry::Context.current
    #     ->(&work) { OpenTelemetry::Context.with_current(context, &work) }
    #   end
    def carry_context(&capture)
      ArgumentChecks.block(capture, "Heddle.carry_context")
      WorkContext.add_carrier(capture)
    end
  end
end
