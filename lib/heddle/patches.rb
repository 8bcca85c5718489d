# frozen_string_literal: true

module Heddle # :nodoc:
  # Changes of Ruby's own classes. Loading Heddle makes none of them: they are made when the first scheduler of the
  # process opens, or what else needs them begins. docs/internals/coverage.md lists them.
  #
  # @api private
  module Patches
    @list = []

    class << self
      # Called by the files in patches/, which are loaded with Heddle: files may be gone when a scheduler opens.
      #
      # @yield makes the change; it may do so twice
      def add(&change) = @list << change

      # Makes the changes. The extension calls this, too.
      #
      # Threads may do so at once, and each goes on only after all changes have been made.
      def install
        return if @installed

        @list.each(&:call)
        @installed = true
      end
    end
  end
  private_constant :Patches
end
