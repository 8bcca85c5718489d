# frozen_string_literal: true

require_relative "stalls/stall"
require_relative "stalls/causes"
require_relative "stalls/receivers"
require_relative "stalls/watcher"

module Heddle # :nodoc:
  # Reports fibers that keep their thread for too long (`stall_after:`).
  module Stalls
    # Seconds that the end of the process waits for the last reports.
    LAST_REPORTS = 1
    # The folder of Heddle's own files, whose frames reports leave out.
    LIB = File.expand_path("..", __dir__).freeze
    private_constant :LAST_REPORTS, :LIB

    @receivers = Receivers.new
    @causes = PerProcess.new { Causes.new }
    @causes.get # Now, as a signal handler may start a scheduler.
    @watching = ThreadGroup.new

    class << self
      # Starts the thread that watches a scheduler's thread. The extension calls this.
      #
      # @param watch [StallWatch]
      # @param thread [Thread]
      def watch(watch, thread)
        watcher = Watcher.new(watch, thread, @causes.get, @receivers)
        @watching.add(WorkContext.thread("heddle stall watch") { watcher.run })
        join_at_exit
      end

      # @param receiver [#call]
      # @return [Subscription]
      def add(receiver)
        @receivers.add(receiver)
        Subscription.new { @receivers.remove(receiver) }
      end

      # @param recorder [#call] (see Receivers#record)
      def record(recorder)
        @receivers.record(recorder)
      end

      # @return [Array<String>] how the paths of files begin that belong to Heddle, to Ruby, and to gems
      def libraries
        @libraries ||= [LIB, "<internal:", *RbConfig::CONFIG.values_at("rubylibprefix", "rubylibdir"),
                        *(Gem.path if defined?(Gem))].uniq.freeze
      end

      private

      # At the end of the process the schedulers are closed, and the threads end when they have reported what was left.
      def join_at_exit
        return if @joins_at_exit

        @joins_at_exit = true
        at_exit do
          @watching.list.each { |watching| watching.join(LAST_REPORTS) }
          @receivers.finish(LAST_REPORTS)
        end
      end
    end
  end
  private_constant :Stalls

  # Calls the block for each stall: a fiber that keeps its thread for longer than the scheduler's `stall_after:`. It is
  # called once while the stall lasts, and once when it has ended ({Stall#ended?}). Without any receiver, Heddle writes
  # a line on `$stderr` instead.
  #
  # While C code keeps the GVL no receiver can run. It is called when that code returns, with the place of the call.
  #
  # Receivers run one after the other, in order of their registration, on a thread of their own. A receiver that raises
  # is reported on `$stderr`. One that blocks delays later reports, of which the first 100 are kept.
  #
  # Stalls at the same place are reported every 10 seconds at most, with their number so far ({Stall#count}).
  #
  # @yieldparam stall [Stall]
  # @return [Subscription] its `unsubscribe` removes the receiver
  # @raise [ArgumentError] without a block
  # @example
  #   Heddle.on_stall { |stall| Rails.logger.warn(stall.to_s) }
  def self.on_stall(&receiver)
    ArgumentChecks.block(receiver, "Heddle.on_stall")
    # Its own object: a Proc may be registered twice.
    Stalls.add(receiver.dup)
  end
end
