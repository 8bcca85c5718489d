# frozen_string_literal: true

module Heddle
  module Testing
    # The command by which this process was started.
    module Command
      # Behind this, Ruby searches for the program.
      SEARCH = "-S"
      private_constant :SEARCH

      class << self
        # @return [Array<String>] the words of the command that runs the program again
        def words
          all = started
          all.empty? ? ["ruby", $PROGRAM_NAME, *ARGV] : ["ruby", *all.drop(1)]
        end

        # @return [Array<String>] Ruby's own options in it, such as `-Ilib`
        def options = started.drop(1).take_while { |word| word != SEARCH && word != $PROGRAM_NAME }

        private

        # @return [Array<String>] empty if it is not known, as a process may change its title
        def started
          words = File.read("/proc/self/cmdline").chomp("\0").split("\0", -1)
          [$PROGRAM_NAME, SEARCH].any? { |word| words.drop(1).include?(word) } ? words : []
        rescue SystemCallError
          []
        end
      end
    end
    private_constant :Command
  end
end
