# frozen_string_literal: true

# Stands in for the gem of that name, which Debian does not have: it makes a test without an assertion fail.
module Minitest
  class Test # :nodoc:
    def self.prove_it! = nil
  end
end
