# frozen_string_literal: true

module Heddle
  module Testing
    # Which variables each line of a file reads and writes, by the instructions that Ruby compiles it to.
    #
    # Only those that a line reads or writes each time that it runs: what comes after a branch may not run.
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
      BRANCHES = /\A(?:branch|jump\z|leave\z|throw\z)/
      NONE = [].freeze
      # `kind` is `:instance`, `:class` or `:global`.
      Access = Data.define(:kind, :name, :written)
      private_constant :VARIABLES, :WITHIN, :OWN, :BRANCHES, :NONE

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
        # Where several statements of a line differ, it is not known which one runs.
        found = @found[[type, first]]&.[](line)&.uniq
        found && found.size == 1 ? found.first : NONE
      end

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
        statement = line = nil
        instructions.each do |instruction|
          line = instruction if instruction.is_a?(Integer)
          statement = step(instruction, statement) { @found[frame][line] << [] }
        end
      end

      # @yield a statement begins
      # @return [Array<Access>, nil] those of the statement; nil where it may not run to its next instruction
      def step(instruction, statement)
        case instruction
        when :RUBY_EVENT_LINE then yield.last
        when /\Alabel/ then nil
        when Array then add(statement, *instruction) unless instruction.first.match?(BRANCHES)
        else statement
        end
      end

      def add(statement, instruction, variable = nil, *)
        kind, written = VARIABLES[instruction]
        is_shared = kind && !(kind == :global && OWN.match?(variable))
        statement << Access.new(kind, variable, written) if statement && is_shared
        statement
      end

      def code?(operand) = operand.is_a?(Array) && operand.first.to_s.start_with?("YARV")
    end
    private_constant :Accesses
  end
end
