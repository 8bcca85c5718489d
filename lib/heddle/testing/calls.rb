# frozen_string_literal: true

module Heddle
  module Testing # :nodoc:
    # Which ends of Ruby's own methods are points.
    #
    # Ruby checks for interrupts when it leaves the frame of a method, and so can preempt there. Some calls have no
    # frame: instructions of the virtual machine, accessors, and what only calls a block. TracePoint tells their ends
    # too, as a trace takes the instructions away. The tables hold for Ruby 3.3 to 4.0, on which a seed gives the same
    # schedule.
    module Calls
      # What is an instruction for an object of these classes.
      INSTRUCTIONS = {
        Integer => %i[+ - * / % & | [] < <= > >= == === succ],
        Float => %i[+ - * / % < <= > >= == ===],
        String => %i[+ << == === =~ size length empty? succ freeze -@],
        Symbol => %i[== ===],
        Array => %i[+ << [] []= size length empty?],
        Hash => %i[[] []= size length empty?],
        Regexp => %i[=~],
        NilClass => %i[nil?],
        Kernel => %i[nil? === send block_given?],
        Module => %i[===],
        BasicObject => %i[== != ! __send__],
        Proc => %i[call () yield === []]
      }.freeze
      # What is written in C in some versions and in Ruby in others, or calls something else in each. True stands for
      # all methods of the class. After these a line has no points until its next call.
      VARYING = {
        Array => %i[each map collect filter select],
        Integer => %i[downto],
        NilClass => %i[rationalize to_c to_r],
        Numeric => %i[+@ dup],
        Symbol => %i[id2name name to_s],
        Time => %i[xmlschema iso8601],
        Thread::Mutex => true, Thread::ConditionVariable => true, Scheduler => true,
        Thread::Queue => %i[initialize], Thread::SizedQueue => %i[initialize], Set => %i[initialize],
        Class => %i[new inherited], Exception => %i[exception initialize backtrace],
        Module => %i[attr_reader attr_writer attr_accessor private public protected define_method method_added],
        BasicObject => %i[singleton_method_added],
        Kernel => %i[require require_relative define_singleton_method]
      }.freeze
      # What lets others run.
      YIELDING = { Thread.singleton_class => %i[pass] }.freeze
      # Classes whose `initialize` is written in C in some versions and in Ruby in others, and whose end is a point.
      INITIALIZED = [Thread::Mutex, Thread::ConditionVariable, Hash].freeze
      # Methods of Ruby that are written in Ruby, and end with a check for interrupts.
      IN_RUBY = {
        initialize: INITIALIZED,
        to_i: [Integer], to_int: [Integer], zero?: [Integer, Float], even?: [Integer], odd?: [Integer],
        positive?: [Float], negative?: [Float], clone: [Kernel], Integer: [Kernel, Kernel.singleton_class],
        Float: [Kernel, Kernel.singleton_class], now: [Time.singleton_class], at: [Time.singleton_class],
        pop: [Thread::Queue, Thread::SizedQueue], deq: [Thread::Queue, Thread::SizedQueue],
        shift: [Thread::Queue, Thread::SizedQueue], push: [Thread::SizedQueue], enq: [Thread::SizedQueue],
        "<<": [Thread::SizedQueue]
      }.freeze
      # Classes that are written in C in some versions and in Ruby in others, and whose methods' ends are points.
      EITHER = [Set].freeze
      # What is an instruction in other versions, where the object is written in front of it.
      INSTRUCTIONS_OF_LITERALS = RUBY_VERSION < "3.4" ? { Array => %i[include?] }.freeze : {}.freeze
      LITERAL = /\]\.include\?/
      # Where the caller of a method that returns is in the backtrace of {line_after}: behind Run.outside, the
      # TracePoint's block and the method.
      CALLER = 4
      INSTANCE_METHOD = Module.instance_method(:instance_method)
      private_constant :INSTRUCTIONS, :VARYING, :YIELDING, :INITIALIZED, :IN_RUBY, :EITHER, :INSTRUCTIONS_OF_LITERALS,
                       :LITERAL, :CALLER, :INSTANCE_METHOD

      @kinds = Hash.new { |kinds, owner| kinds[owner] = {} }.compare_by_identity
      @lines = Hash.new { |lines, path| lines[path] = File.file?(path) ? File.readlines(path) : [] }

      class << self
        # @param point [TracePoint] a `:c_return`
        # @return [:point, :yields, :last, :none, :varies] the last two are no points; after `:last` and `:varies` no
        #   branch of the line is one
        def kind(point)
          owner = point.defined_class
          name = point.method_id
          kinds = @kinds[owner]
          kind = kinds[name] ||= decide(owner, name)
          kind == :literal ? of_literal(point) : kind
        end

        # @param point [TracePoint] a `:return` outside of the files
        # @param files [ProgramFiles]
        # @return [Thread::Backtrace::Location, nil] the line of the files to which one of Ruby's methods returns, if
        #   that is a point
        def line_after(point, files)
          return unless ends?(point.defined_class, point.method_id)

          caller = caller_locations(CALLER, 1)&.first
          caller if caller && files.include?(caller.path)
        end

        private

        def ends?(owner, name)
          IN_RUBY[name]&.include?(owner) || (EITHER.include?(owner) && name != :initialize)
        end

        def decide(owner, name)
          return :last if last?(owner, name)
          return :varies if listed?(VARYING, owner, name)
          return :yields if listed?(YIELDING, owner, name)
          return :none if listed?(INSTRUCTIONS, owner, name) || accessor?(owner, name)

          listed?(INSTRUCTIONS_OF_LITERALS, owner, name) ? :literal : :point
        end

        def last?(owner, name)
          EITHER.include?(owner) || (name == :initialize && INITIALIZED.include?(owner))
        end

        def listed?(table, owner, name)
          names = table[owner]
          names == true || names&.include?(name)
        end

        # Accessors have no frame. They tell where they were defined, as methods in C do not.
        def accessor?(owner, name)
          return owner.members.include?(name.to_s.chomp("=").to_sym) if member?(owner)

          path, = INSTANCE_METHOD.bind_call(owner, name).source_location
          !path.nil? && !path.start_with?("<internal:")
        rescue NameError
          # It was removed, or is hidden, while it ran.
          false
        end

        # The program may have overridden the methods of its classes.
        def member?(owner)
          [Struct, Data].any? { |type| type > owner } && owner.respond_to?(:members)
        end

        def of_literal(point)
          @lines[point.path][point.lineno - 1]&.match?(LITERAL) ? :none : :point
        end
      end
    end
    private_constant :Calls
  end
end
