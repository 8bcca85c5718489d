# frozen_string_literal: true

module Heddle
  # What work takes along from the fiber that starts it. docs/structured-concurrency.md has the table: for each place
  # that starts work, what the work sees. Each such place takes its context from here.
  #
  # - Fiber storage (`Fiber[]`): a fiber that the calling fiber makes inherits a copy from Ruby. Work that starts later,
  #   or on another thread, gets the copy that {capture} has made.
  # - The application's context: `heddle/rails` sets {application}.
  # - `Thread.current[]` is not taken along. It belongs to a fiber, or to a pool's thread.
  class WorkContext
    UNMASKED = { Object => :immediate }.freeze
    private_constant :UNMASKED

    class << self
      # @return [#capture, nil] `capture(wrap:)` returns an object with `run { }`, or nil; `isolate { }` runs a block
      #   whose changes to the thread's state are forgotten at its end
      attr_accessor :application

      # For work that starts later, or on another thread.
      #
      # @param wrap [Boolean] whether the work is a unit of its own, which ends with the block, rather than a part of
      #   what the caller does
      # @return [WorkContext]
      def capture(wrap: true) = new(Fiber.current.storage || {}, @application&.capture(wrap:))

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

        captured = @application&.capture(wrap: true)
        return work unless captured

        ->(*arguments, **keywords) { captured.run { work.call(*arguments, **keywords) } }
      end

      # Starts a thread that outlives the work of its creator. Ruby copies the storage of the creator to it, which would
      # keep the data of a request for ever, and the creator's masks of `Thread.handle_interrupt`, with which nothing
      # could end the thread.
      #
      # @param name [String]
      # @return [Thread]
      def thread(name)
        Thread.new do
          Thread.handle_interrupt(UNMASKED) do
            Thread.current.name = name
            NONE.replace_storage
            yield
          end
        end
      end
    end

    # @return [Hash{Symbol => Object}] what `Fiber.new(storage:)` takes
    attr_reader :storage

    # @param storage [Hash{Symbol => Object}]
    # @param application [#run, nil]
    def initialize(storage, application)
      @storage = storage
      @application = application
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
      application ? application.isolate { run(&) } : yield
    ensure
      WorkContext.new(before, nil).replace_storage if before
    end

    # Gives the current fiber this storage.
    #
    # @return [void]
    def replace_storage
      (Fiber.current.storage || {}).each_key { |key| Fiber[key] = nil unless @storage.key?(key) }
      @storage.each { |key, value| Fiber[key] = value }
    end

    private

    def run(&)
      @application ? @application.run(&) : yield
    end

    NONE = new({}, nil)
    private_constant :NONE
  end
  private_constant :WorkContext
end
