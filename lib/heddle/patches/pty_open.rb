# frozen_string_literal: true

begin
  require "pty"
rescue LoadError
  # This system has no pseudo-terminals.
end

module Heddle # :nodoc:
  # Closes the terminal at the end of the block by `IO#close`, which ends the operations on it. Ruby's own method closes
  # it in C, of which Ruby 3.3 and 3.4 tell the scheduler nothing.
  module PTYOpen
    # Opens a pair of terminals; see Ruby's documentation.
    def open
      pair = super(&nil)
      return pair unless block_given?

      begin
        yield pair
      ensure
        pair.each(&:close)
      end
    end
  end
  private_constant :PTYOpen

  Patches.add { PTY.singleton_class.prepend(PTYOpen) } if defined?(PTY)
end
