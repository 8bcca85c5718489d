# frozen_string_literal: true

require_relative "contestant"

# No scheduler at all: the workload's `bare` method does the same work with as little as possible.
class BareContestant < Contestant
  def bare? = true
end
