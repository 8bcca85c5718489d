# frozen_string_literal: true

module Heddle
  module PumaSupport
    # What `plugin :heddle` adds to the language of `config/puma.rb`.
    module DSL
      # Sets options of `plugin :heddle`. Without a call, the defaults hold. Puma's `threads` has no effect then.
      # `HEDDLE=off` in the environment turns the plugin off.
      #
      # @param options [Hash]
      # @option options [Integer] :fibers (512) how many requests are handled at a time, in each worker process. Further
      #   connections wait in the kernel's backlog. A connection that waits for a request does not count.
      # @option options [Float, Integer, Rational, nil] :slow (nil) seconds: a request that takes so long or longer is
      #   logged in one line, with what its fiber has spent the time on. `stats: :detailed` is the default then
      # @option options [:own, :shared] :thread_variables (:own) whether each request has thread variables
      #   (`Thread#thread_variable_get`) of its own, as with a thread for each request, or all share those of the thread
      # @option options [:all, :yielding, :none] :preempt (:all) see {Heddle::Scheduler#initialize}, for the other
      #   options, too: `tick:`, `quantum:`, `backend:`, `ticker:`, `signal:`, `workers:`, `grace:`, `stats:`,
      #   `stall_after:`. `ticker: :signal` needs a `signal:` that Puma does not handle itself, such as `"ALRM"`
      # @return [void]
      # @raise [ArgumentError, TypeError] for an invalid option
      # @example config/puma.rb
      #   plugin :heddle
      #   heddle fibers: 200, quantum: 0.005
      def heddle(**)
        # Where Heddle cannot run, or is turned off, Puma serves with its threads.
        return if !Heddle.supported? || Settings.off?

        @options[:heddle] = @options[:heddle]&.with(**) || Settings.new(**)
      end
    end
  end
end

Puma::DSL.include(Heddle::PumaSupport::DSL)
