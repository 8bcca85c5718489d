# frozen_string_literal: true

module Heddle
  # Thread variables (`Thread#thread_variable_get`) of a thread that serves many units of work. Libraries keep what
  # belongs to a request in them, such as sentry-ruby its hub: with one thread for each request they would be the
  # request's, so here they are the unit's. What was set before the thread began to serve is seen in each unit.
  #
  # Other threads see, and set, the thread's own.
  module ThreadVariables
    class << self
      # From now on each unit of the thread has its own.
      #
      # @param thread [Thread]
      # @return [void]
      def separate(thread)
        return if thread.is_a?(self)

        ConcurrentLocals.install
        thread.extend(self)
      end
    end

    # @return [Object, nil] the variable; see Ruby's documentation
    def thread_variable_get(key)
      # First, because it raises for what is no name.
      of_thread = super
      own = own_thread_variables
      own ? own.fetch(ThreadVariables.symbol(key), of_thread) : of_thread
    end

    # Sets the variable; see Ruby's documentation.
    def thread_variable_set(key, value)
      return super if frozen? || Fiber.current.blocking? || !equal?(::Thread.current)

      thread_variable?(key) # raises for what is no name
      ConcurrentLocals.install
      UnitOfWork.current_or_new.variables[ThreadVariables.symbol(key)] = value
    end

    # @return [Boolean] whether there is such a variable; see Ruby's documentation
    def thread_variable?(key)
      of_thread = super
      own = own_thread_variables
      own&.key?(name = ThreadVariables.symbol(key)) ? !own[name].nil? : of_thread
    end

    # @return [Array<Symbol>] the names; see Ruby's documentation
    def thread_variables
      own = own_thread_variables
      own ? super | own.keys : super
    end

    # @api private
    def self.symbol(key) = key.is_a?(Symbol) ? key : String.try_convert(key).to_sym

    private

    def own_thread_variables = equal?(::Thread.current) ? UnitOfWork.current_on(self)&.variables : nil

    # concurrent-ruby keeps the values of its `ThreadLocalVar`s in a thread variable, an Array that it forgets when the
    # thread ends. That of a unit must be forgotten when the unit is collected: the thread goes on.
    module ConcurrentLocals
      VARIABLE = :concurrent_thread_locals
      NEEDED = %i[weak_synchronize thread_fiber_finalizer locals!].freeze
      private_constant :VARIABLE, :NEEDED

      # Units may do so at once, and each goes on only after it is done: `prepend` may be called twice.
      #
      # @return [void]
      def self.install
        return if @installed || !::Object.const_defined?("Concurrent::ThreadLocalVar")

        locals = ::Concurrent.const_get(:ThreadLocals)
        methods = locals.instance_methods + locals.private_instance_methods
        locals.prepend(self) if (NEEDED - methods).empty?
        @installed = true
      end

      # @api private
      def locals!
        unit = UnitOfWork.current_on(::Thread.current) if ::Thread.current.is_a?(ThreadVariables)
        return super unless unit

        unit.variables[VARIABLE] || add_locals_of(unit)
      end

      private

      def add_locals_of(unit)
        [].tap do |locals|
          weak_synchronize { @all_arrays[locals.object_id] = locals } # rubocop:disable Lint/HashCompareByIdentity
          ::ObjectSpace.define_finalizer(unit, thread_fiber_finalizer(locals.object_id))
          unit.variables[VARIABLE] = locals
        end
      end
    end
    private_constant :ConcurrentLocals
  end
  private_constant :ThreadVariables
end
