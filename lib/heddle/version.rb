# frozen_string_literal: true

module Heddle
  # @return [String] the version of the gem, such as `"0.1.0"`
  VERSION = "0.1.0"
end
