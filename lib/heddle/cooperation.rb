# frozen_string_literal: true

module Heddle # :nodoc:
  # What the scheduler's option `cooperative:` needs of Ruby.
  module Cooperation
    LIB = File.expand_path("..", __dir__)
    private_constant :LIB

    # The extension calls this.
    #
    # @return [Array<String>] how the paths of files begin whose code serves any caller, and is cooperative where its
    #   caller is: Ruby's own, what C functions have in place of a path, and Heddle's
    def self.transparent = ["#{LIB}/", "#{RbConfig::CONFIG["rubylibdir"]}/", "<internal:", "<cfunc>"]
  end
  private_constant :Cooperation
end
