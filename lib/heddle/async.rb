# frozen_string_literal: true

require "async"
require "heddle"

unless Heddle.supported?
  require_relative "async/unsupported"
  Heddle.const_get(:Extension).step_aside("Async keeps its own schedulers")
  return
end

module Heddle
  # Async's tasks on a Heddle scheduler.
  #
  # `require "heddle/async"` lets `Async { }`, `Sync { }`, and whatever is built on them, run on a thread that a Heddle
  # scheduler serves: in {Heddle.run}, in a request under Puma, in a job. A task is a fiber of that scheduler, and is
  # preempted like any other, except in the code of Async's own gems: see {COOPERATIVE}.
  #
  # On a thread without a scheduler Async makes its own, unless {default!} has said otherwise.
  #
  # @example
  #   require "heddle/async"
  #
  #   Heddle.run(preempt: :all) do
  #     Sync do |task|
  #       urls.map { |url| task.async { fetch(url) } }.map(&:wait)
  #     end
  #   end
  module Async
    # The gems whose code relies on no switch between two waits, and those that they call in between. Each scheduler
    # that is made after `require "heddle/async"` spares them; what it is given as `cooperative:` comes on top.
    COOPERATIVE = %w[
      async async-* console falcon fiber-* io-endpoint io-event io-stream metrics protocol-* traces
    ].freeze
    # What runs in a task's fiber before the task's block, and after it: a task that has not begun must not be found.
    AROUND = %w[async fiber_body.rb].map { |path| File.expand_path(path, __dir__) }.freeze
    # `HEDDLE_ASYNC=preempt` in the environment stands for `default!(preempt: :all)`, for programs that load this by
    # `RUBYOPT=-rheddle/async`.
    VARIABLE = "HEDDLE_ASYNC"
    private_constant :AROUND, :VARIABLE

    class << self
      # @return [Hash, nil] the options of the schedulers that `Async { }` makes; nil if Async makes its own
      attr_reader :default

      # From now on `Async { }`, `Sync { }` and `Async::Reactor.new` make a Heddle scheduler on a thread without a
      # scheduler.
      #
      # @param options [Hash] of these schedulers; see {Scheduler#initialize}
      # @return [void]
      # @raise [ArgumentError] for an invalid option
      # @raise [IncompatibleLibraryError] if this version of Async lacks what is needed
      # @example The first line of a program
      #   Heddle::Async.default!(preempt: :all)
      def default!(**options)
        PART.demand
        # Checks the options now, and not at the first `Async { }`.
        Scheduler.new(**options).close
        @default = options.freeze
      end

      private

      # If Async lacks something, it keeps its own schedulers, and a line on `$stderr` says so.
      def install
        return unless PART.install

        Cooperation.spare(COOPERATIVE + AROUND)
        Scheduler.prepend(Protocol)
        use_environment
      end

      # @raise [ArgumentError]
      def use_environment
        case (value = ENV.fetch(VARIABLE, ""))
        when "" then nil
        when "preempt" then default!(preempt: :all)
        else raise ArgumentError, "#{VARIABLE}=#{value}: must be preempt"
        end
      end
    end
  end
end

require_relative "async/timers"
require_relative "async/load"
require_relative "async/root"
require_relative "async/protocol"
require_relative "async/tasks"
require_relative "async/part"

Heddle::Async.__send__(:install)
