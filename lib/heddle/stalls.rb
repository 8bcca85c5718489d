# frozen_string_literal: true

require_relative "stalls/stall"
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
    @watching = ThreadGroup.new
    @watches = false

    class << self
      # @return [Boolean] whether this process watches, or has watched, a scheduler's thread
      attr_reader :watches

      # Starts the thread that watches a scheduler's thread. The extension calls this.
      #
      # @param watch [StallWatch]
      # @param thread [Thread]
      def watch(watch, thread)
        watcher = Watcher.new(watch, thread, @receivers)
        watching = Thread.new { watcher.run }
        watching.name = "heddle stall watch"
        @watching.add(watching)
        join_at_exit
        @watches = true
      end

      # Tells this thread's scheduler that a fiber has got a name, or lost it. A native thread cannot ask Ruby.
      #
      # @param fiber [Fiber]
      # @param name [String, nil]
      def named(fiber, name)
        scheduler = Fiber.scheduler
        scheduler.__send__(:name_fiber, fiber, name && Names.quoted(name).lstrip) if scheduler.is_a?(Scheduler)
      end

      # @param receiver [#call]
      def add(receiver)
        StallWatch.write_no_lines
        @receivers.add(receiver)
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
  # While C code keeps the GVL no receiver can run. It is called afterwards, with what was seen while the stall lasted.
  # Without any receiver, the line is written to descriptor 2 while the stall lasts.
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
