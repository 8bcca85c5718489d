# frozen_string_literal: true

module Heddle
  VERSION = "0.1.0"
end
