# frozen_string_literal: true

module Heddle
  # Measures how late fibers of a scheduler run: a fiber sleeps for a while, again and again, and compares the clock.
  # {Scheduler#stats} cannot tell it: its histogram `scheduled_duration` begins at the poll that finds a timer expired,
  # and a fiber that keeps the thread delays that poll.
  #
  # A scheduler has one probe at most. The Puma plugin starts one for as long as the server runs; `heddle/web` starts
  # one for a few seconds, each time that the dashboard asks.
  #
  # @api private
  class LagProbe
    # Seconds between two measurements.
    INTERVAL = 0.25
    # How many measurements are kept: those of the last two seconds.
    KEPT = 8
    NAME = "#{Names::OWN}lag".freeze
    VARIABLE = :@heddle_lag_probe
    private_constant :INTERVAL, :KEPT, :NAME, :VARIABLE

    # @param scheduler [Scheduler]
    # @return [LagProbe, nil] the probe that runs in the scheduler, in this process
    def self.of(scheduler)
      probe = scheduler.instance_variable_get(VARIABLE)
      probe if probe&.running?
    end

    # Measures for some seconds, in the scheduler of this thread. If the scheduler has a probe that would end earlier,
    # that probe lasts as long.
    #
    # @param seconds [Numeric]
    # @return [void] nothing happens if this thread's scheduler is not Heddle's, or there is none
    def self.run_for(seconds)
      scheduler = Fiber.scheduler
      return unless scheduler.is_a?(Scheduler)

      finish = Context.now + seconds
      probe = of(scheduler)
      probe ? probe.last_until(finish) : new.start(finish)
    end

    def initialize
      @max = 0.0
      @recent = []
    end

    # Starts the fiber, in the scheduler of this thread. It ends early if no other fiber is left.
    #
    # It has no parent, and no scope awaits it, as one would await a fiber of `Fiber.schedule`: the caller may be in a
    # {Heddle.run} of the program that ends earlier.
    #
    # @param finish [Float] when it ends, on the monotonic clock
    # @return [void]
    def start(finish = Float::INFINITY)
      scheduler = Fiber.scheduler
      @generation = Native.generation
      @finish = finish
      @due = Context.now
      node = TreeNode.new(scheduler, name: NAME, context: WorkContext.none)
      @fiber = node.start { measure until Context.now >= @finish || alone? }
      scheduler.instance_variable_set(VARIABLE, self)
    end

    # @param finish [Float] when it ends, unless it ends later anyway
    # @return [void]
    def last_until(finish)
      @finish = finish if finish > @finish
    end

    # @return [Boolean]
    def running? = @generation == Native.generation && @fiber.alive?

    # Ends the fiber.
    def stop = @fiber.kill

    # @return [Float] seconds: by how much, at most, the fiber was late since the last call
    def take_max
      max = @max
      @max = 0.0
      max
    end

    # @param seconds [Numeric] up to two
    # @return [Float] seconds: by how much, at most, the fiber has been late in the last so many seconds. If it is late
    #   now, that counts, too.
    def max_of_last(seconds)
      now = Context.now
      late = @recent.filter_map { |measured_at, lateness| lateness if now - measured_at <= seconds }
      [*late, now - @due, 0.0].max
    end

    private

    # Whether all other fibers have ended, and the scheduler could close but for this one.
    def alone?
      fibers = Fiber.scheduler.stats[:fibers]
      fibers[:runnable].zero? && fibers[:waiting] == fibers[:waiting_for].fetch(:close, 0)
    end

    def measure
      @due = Context.now + INTERVAL
      sleep INTERVAL
      now = Context.now
      late = now - @due
      @max = late if late > @max
      # Other threads may read it meanwhile.
      @recent = [*@recent.last(KEPT - 1), [now, late].freeze].freeze
    end
  end
  private_constant :LagProbe
end
