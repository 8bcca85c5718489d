# frozen_string_literal: true

module Heddle # :nodoc:
  # What the scheduler's option `cooperative:` needs of Ruby.
  module Cooperation
    LIB = File.expand_path("..", __dir__)
    private_constant :LIB

    @spared = [].freeze

    class << self
      # @return [Array<String>] what each scheduler spares
      attr_reader :spared

      # Adapters say whose code each scheduler that is made from now on spares.
      #
      # @param entries [Array<String>] as the option takes them
      def spare(entries)
        Heddle.without_preemption { @spared = (@spared | entries).freeze }
      end

      # The extension calls this.
      #
      # @return [Array<String>] how the paths of files begin whose code serves any caller, and is cooperative where its
      #   caller is: Ruby's own, what C functions have in place of a path, and Heddle's
      def transparent = ["#{LIB}/", "#{RbConfig::CONFIG["rubylibdir"]}/", "<internal:", "<cfunc>"]
    end
  end
  private_constant :Cooperation
end
