# frozen_string_literal: true

module Heddle
  # What work takes along from the fiber that starts it. docs/structured-concurrency.md has the table: for each place
  # that starts work, what the work sees. Each such place takes its context from here.
  #
  # - Fiber storage (`Fiber[]`): a fiber that the calling fiber makes inherits a copy from Ruby. Work that starts later,
  #   or on another thread, gets the copy that {capture} has made.
  # - The application's context: `heddle/rails` sets {application}.
  # - What {Heddle.carry_context} was told to carry.
  # - `Thread.current[]` is not taken along. It belongs to a fiber, or to a pool's thread.
  class WorkContext
    UNMASKED = { Object => :immediate }.freeze
    # For a block that runs in a context, the program's own, which reports name.
    BLOCK = :@heddle_block
    private_constant :UNMASKED, :BLOCK

    @carriers = [].freeze

    class << self
      # @return [#capture, nil] `capture(wrap:)` returns an object with `run { }`, or nil; `isolate { }` runs a block
      #   whose changes to the thread's state are forgotten at its end
      attr_accessor :application

      # For work that starts later, or on another thread.
      #
      # @param wrap [Boolean] whether the work is a unit of its own, which ends with the block, rather than a part of
      #   what the caller does
      # @return [WorkContext]
      def capture(wrap: true) = new(Fiber.current.storage || {}, @application&.capture(wrap:), carried)

      # @param carrier [Proc] see {Heddle.carry_context}
      # @return [Subscription]
      def add_carrier(carrier)
        Scheduler.prepend(ScheduledContext)
        Heddle.without_preemption { @carriers = [*@carriers, carrier].freeze }
        Subscription.new do
          Heddle.without_preemption { @carriers = @carriers.reject { |other| other.equal?(carrier) }.freeze }
        end
      end

      # For work that has nothing to do with the fiber that happens to start it.
      #
      # @return [WorkContext]
      def none = NONE

      # For a fiber that the calling fiber makes.
      #
      # @param work [Proc]
      # @param context [WorkContext, nil] nil is what the calling fiber has
      # @return [Proc] what the new fiber runs
      def carry(work, context = nil)
        return ->(*arguments, **keywords) { context.enter { work.call(*arguments, **keywords) } } if context

        run_in(@application&.capture(wrap: true), carried, work)
      end

      # For a fiber of `Fiber.schedule`, or a promise: a unit of its own, to which the application's context does not
      # belong.
      #
      # @param work [Proc]
      # @return [Proc] what the new fiber runs
      def carry_libraries(work) = run_in(nil, carried, work)

      # @param block [Proc]
      # @return [Proc] the program's
      def block_of(block) = block.instance_variable_get(BLOCK) || block

      # Starts a thread that outlives the work of its creator. Ruby copies the storage of the creator to it, which would
      # keep the data of a request for ever, and the creator's masks of `Thread.handle_interrupt`, with which nothing
      # could end the thread.
      #
      # @param name [String]
      # @param kind [Class] Thread, or a subclass
      # @return [Thread]
      def thread(name, kind = Thread)
        kind.new do
          Thread.handle_interrupt(UNMASKED) do
            Thread.current.name = name
            NONE.replace_storage
            yield
          end
        end
      end

      private

      # @return [Array<#call>]
      def carried
        return @carriers if @carriers.empty?

        @carriers.filter_map do |carrier|
          enter = carrier.call
          next enter if !enter || enter.respond_to?(:call)

          raise TypeError, "Heddle.carry_context: the block must return nil, or what has `call`, such as a lambda " \
                           "that takes a block, not #{enter.inspect}"
        end
      end

      def run_in(application, carried, work)
        return work if application.nil? && carried.empty?

        context = new(nil, application, carried)
        block = ->(*arguments, **keywords) { context.run { work.call(*arguments, **keywords) } }
        block.tap { block.instance_variable_set(BLOCK, work) }
      end
    end

    # @return [Hash{Symbol => Object}] what `Fiber.new(storage:)` takes
    attr_reader :storage

    # @param storage [Hash{Symbol => Object}]
    # @param application [#run, nil]
    # @param carried [Array<#call>] each runs its block in a context
    def initialize(storage, application, carried)
      @storage = storage
      @application = application
      @carried = carried
    end

    # Runs the block in the current fiber, which was made for it.
    #
    # @return [Object] the block's value
    def enter(&)
      replace_storage
      run(&)
    end

    # Runs the block in the current fiber, which other work uses before and after.
    #
    # @return [Object] the block's value
    def run_here(&)
      before = Fiber.current.storage || {}
      replace_storage
      application = WorkContext.application
      application ? application.isolate { run(&) } : run(&)
    ensure
      WorkContext.new(before, nil, []).replace_storage if before
    end

    # Gives the current fiber this storage.
    #
    # @return [void]
    def replace_storage
      (Fiber.current.storage || {}).each_key { |key| Fiber[key] = nil unless @storage.key?(key) }
      @storage.each { |key, value| Fiber[key] = value }
    end

    # Runs the block with all but the storage.
    #
    # @return [Object] the block's value
    def run(&)
      return @application ? @application.run(&) : yield if @carried.empty?

      @application ? @application.run { run_carried(&) } : run_carried(&)
    end

    private

    # @raise [RuntimeError] if one of them does not call its block
    def run_carried
      value = ran = nil
      work = proc do
        ran = true
        value = yield
      end
      @carried.reverse.reduce(work) { |inner, enter| proc { enter.call(&inner) } }.call
      raise "Heddle.carry_context: the block's `call` must call its block, and has not done so" unless ran

      value
    end

    NONE = new({}, nil, [])
    private_constant :NONE
  end
  private_constant :WorkContext

  # The fibers of `Fiber.schedule` take contexts along, from the first call of {Heddle.carry_context} on. Where the
  # caller gives their storage, it has chosen their context.
  module ScheduledContext
    # @api private
    def fiber(*, **options, &block)
      return super if block.nil? || options.key?(:storage)

      super(*, **options, &WorkContext.carry_libraries(block))
    end
  end
  private_constant :ScheduledContext
end
