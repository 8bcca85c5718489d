# frozen_string_literal: true

require_relative "stalls/stall"
require_relative "stalls/causes"
require_relative "stalls/receivers"
require_relative "stalls/watcher"

module Heddle # :nodoc:
  # Reports fibers that keep their thread for too long (`stall_after:`).
  module Stalls
    @causes = Causes.new
    @receivers = Receivers.new

    class << self
      # Starts the thread that watches a scheduler's thread. The extension calls this.
      #
      # @param watch [StallWatch]
      # @param thread [Thread]
      def watch(watch, thread)
        watcher = Watcher.new(watch, thread, @causes, @receivers)
        Thread.new { watcher.run }.name = "heddle stall watch"
      end

      # @param receiver [#call]
      def add(receiver)
        @receivers.add(receiver)
      end

      # @param recorder [#call] (see Receivers#record)
      def record(recorder)
        @receivers.record(recorder)
      end
    end
  end
  private_constant :Stalls

  # Calls the block for each stall: a fiber that keeps its thread for longer than the scheduler's `stall_after:`. It is
  # called once while the stall lasts, and once when it has ended ({Stall#ended?}). Without any receiver, Heddle writes
  # a line on `$stderr` instead.
  #
  # Receivers run one after the other, in order of their registration, on a thread of their own. A receiver that raises
  # is reported on `$stderr`. One that blocks delays later reports, of which the first 100 are kept.
  #
  # Stalls at the same place are reported every 10 seconds at most, with their number so far ({Stall#count}).
  #
  # @yieldparam stall [Stall]
  # @return [Proc] the block
  # @raise [ArgumentError] without a block
  # @example
  #   Heddle.on_stall { |stall| Rails.logger.warn(stall.to_s) }
  def self.on_stall(&receiver)
    ArgumentChecks.block(receiver, "Heddle.on_stall")
    Stalls.add(receiver)
    receiver
  end
end
