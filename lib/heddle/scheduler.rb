# frozen_string_literal: true

module Heddle
  # See the README for what each hook covers.
  class Scheduler
  end
  private_constant :Stop
end
