# frozen_string_literal: true

require_relative "interruptible"

module Heddle
  # A request or a job. Code that was written for threads takes the thread that runs it for its own; here many units
  # share one thread. So each unit has what such code expects of a thread: thread variables (see {ThreadVariables}),
  # and a fiber into which other threads can raise.
  #
  # The fibers that a unit starts belong to it, as they inherit its fiber storage. So do the threads that it starts.
  class UnitOfWork < Interruptible
    KEY = :heddle_unit_of_work
    OPTIONS = %i[own shared].freeze
    private_constant :KEY, :OPTIONS

    class << self
      # @return [UnitOfWork, nil] what the calling fiber belongs to
      def current = Fiber[KEY]

      # @return [UnitOfWork] what the calling fiber belongs to; a fiber of none becomes one
      def current_or_new = current_on(Thread.current) || (Fiber[KEY] = new)

      # Runs a job in the calling fiber. Without a scheduler it has its thread for itself.
      #
      # @param thread_variables [:own, :shared] whether the job has thread variables of its own
      # @param log [#call] gets the message if ActiveSupport's isolation level had to be changed
      # @return [Object] the block's value
      def run_job(thread_variables, log:, &)
        return yield unless Context.scheduler_if_any

        FiberIsolation.ensure(&log)
        ThreadVariables.separate(Thread.current) if thread_variables == :own
        new.run(&)
      end

      # Runs the block of a unit as a scope: the fibers that it spins end before this does, and the error of one that no
      # fiber awaits is raised here. Without a scheduler nothing can be spun.
      #
      # @return [Object] the block's value
      def in_scope(&)
        scheduler = Context.scheduler_if_any
        return yield unless scheduler

        Scope.new(scheduler, TreeNode.current(scheduler), :of_spun).run(&)
      end

      # The work has raised what the unit's server rescues within the scope. Stops the fibers that the work has spun, as
      # an error does that leaves a block, and does not wait for their ends.
      #
      # @return [void]
      def failed
        scheduler = Context.scheduler_if_any
        TreeNode.current(scheduler).stop_children if scheduler
      end

      # @param option [Object] the value of an option `thread_variables:`
      # @param method [String] what was given it, for the message
      # @return [:own, :shared]
      # @raise [ArgumentError]
      def check_option(option, method) = ArgumentChecks.one_of(option, "#{method}: thread_variables", OPTIONS)

      # @param thread [Thread]
      # @return [UnitOfWork, nil] what the calling fiber belongs to, if that is a unit of this thread
      def current_on(thread)
        unit = Fiber[KEY]
        unit if unit&.thread.equal?(thread)
      end
    end

    # @return [Thread] the thread that serves the unit
    attr_reader :thread

    # A unit of the calling thread.
    def initialize
      super
      @thread = Thread.current
      @variables = nil
    end

    # @return [Hash{Symbol => Object}] most units set none
    def variables = @variables || Heddle.without_preemption { @variables ||= {} }

    # Runs the block, which is the unit's work, in the calling fiber.
    #
    # @return [Object] the block's value
    def run
      outer = Fiber[KEY]
      Fiber[KEY] = self
      super
    ensure
      Fiber[KEY] = outer
    end
  end
  private_constant :UnitOfWork
end
