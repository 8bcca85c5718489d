# frozen_string_literal: true

module Heddle
  module Testing
    # Which variables each line of a file reads and writes, by the instructions that Ruby compiles it to.
    #
    # Certain are those that a line reads or writes each time that it runs. What comes after a branch may not run, nor
    # what comes after a block that may leave the method: after a `yield`, as its block may do so, too. Of what is
    # uncertain, only writes are noted.
    class Accesses
      # The kind of variable, and whether it is written.
      VARIABLES = {
        getinstancevariable: [:instance, false], setinstancevariable: [:instance, true],
        getclassvariable: [:class, false], setclassvariable: [:class, true],
        getglobal: [:global, false], setglobal: [:global, true]
      }.freeze
      # These have no frame of their own.
      WITHIN = %i[rescue ensure].freeze
      # Globals of which each fiber or frame has its own, and the program's options.
      OWN = /\A\$(?:[~_!@&`'+\d]|-.|stdin\z|stdout\z|stderr\z|PROGRAM_NAME\z)/
      # `super` hands on the block of the method.
      BRANCHES = /\A(?:branch|jump\z|leave\z|throw\z|invokeblock\z|invokesuper|.*forward)/
      CALLS = %i[send opt_send_without_block].freeze
      # The methods that call a Proc.
      CALLING = %i[call yield].freeze
      # The flag of a call with a block that is an argument, and how a `return` in a block leaves the method.
      BLOCK_ARGUMENT = 2
      RETURN = 1
      STATES = 0xf
      NONE = [].freeze
      # `kind` is `:instance`, `:class` or `:global`.
      Access = Data.define(:kind, :name, :written, :certain)
      private_constant :VARIABLES, :WITHIN, :OWN, :BRANCHES, :CALLS, :CALLING, :BLOCK_ARGUMENT, :RETURN, :STATES,
                       :NONE

      @known = {}

      # @param path [String]
      # @return [Accesses] without any for what is no file
      def self.of(path)
        @known[[path, File.mtime(path)]] ||= new(RubyVM::InstructionSequence.compile_file(path))
      rescue SystemCallError, SyntaxError
        new(nil)
      end

      # @param code [RubyVM::InstructionSequence, nil]
      def initialize(code)
        @found = Hash.new { |found, frame| found[frame] = Hash.new { |lines, line| lines[line] = [] } }
        note(code.to_a, nil) if code
        @found.default = nil
        @found.each_value { |lines| lines.default = nil }
      end

      # @param type [:method, :block] of the frame
      # @param first [Integer] the line where the block or the method begins
      # @param line [Integer]
      # @return [Array<Access>]
      def at(type, first, line)
        statements = @found[[type, first]]&.[](line)&.uniq or return NONE
        return statements.first if statements.one?

        # It is not known which one runs.
        statements.flatten.select(&:written).map { |access| access.with(certain: false) }.uniq
      end

      # @return [Array<Access>] those of a method or a block whose code does not begin a line, as in `def name = @name`
      def first(type, first) = at(type, first, nil)

      private

      def note(code, frame)
        *, first, type, _locals, _arguments, caught, instructions = code
        frame = [type, first] unless frame && WITHIN.include?(type)
        note_lines(instructions, frame)
        # The codes of blocks and methods are operands. A `rescue` is told apart.
        codes = caught + instructions.grep(Array)
        codes.flatten(1).each { |operand| note(operand, frame) if code?(operand) }
      end

      def note_lines(instructions, frame)
        statement = line = previous = nil
        is_certain = false
        instructions.each do |instruction|
          line = instruction if instruction.is_a?(Integer)
          began = begin_statement(instruction, statement) { |at = line| @found[frame][at] << [] }
          statement = began || statement
          is_certain = began ? true : is_certain && !ends?(previous, instruction)
          add(statement, is_certain, instruction)
          previous = instruction
        end
      end

      # @yield a statement begins
      # @return [Array<Access>, nil] those of the statement, if one begins
      def begin_statement(instruction, statement)
        case instruction
        when :RUBY_EVENT_LINE then yield.last
        when :RUBY_EVENT_CALL, :RUBY_EVENT_B_CALL then statement || yield(nil).last
        end
      end

      # @return [Boolean] whether the statement may end with this instruction, or goes on here after a branch
      def ends?(previous, instruction)
        return instruction.start_with?("label") if instruction.is_a?(Symbol)

        instruction.is_a?(Array) && (instruction.first.match?(BRANCHES) || leaves?(previous, *instruction))
      end

      # @return [Boolean] whether a block may leave the method in this call
      def leaves?(previous, instruction, call = nil, block = nil, *)
        return false unless CALLS.include?(instruction)
        return true if CALLING.include?(call[:mid]) || (block && returns?(block))

        # The block of `map(&:name)` cannot.
        call[:flag].anybits?(BLOCK_ARGUMENT) && !(previous in [:putobject, Symbol])
      end

      # @param code [Array] of a block
      def returns?(code)
        code.last.grep(Array).any? do |name, *operands|
          next (operands.first & STATES) == RETURN if name == :throw

          operands.any? { |operand| code?(operand) && returns?(operand) }
        end
      end

      def add(statement, is_certain, instruction)
        name, variable, = *instruction
        kind, written = VARIABLES[name]
        return if statement.nil? || kind.nil? || (kind == :global && OWN.match?(variable))

        statement << Access.new(kind, variable, written, is_certain) if is_certain || written
      end

      def code?(operand) = operand.is_a?(Array) && operand.first.to_s.start_with?("YARV")
    end
    private_constant :Accesses
  end
end
