# frozen_string_literal: true

require_relative "contestant"

# No scheduler at all: the workload's `bare` method does the least that would do the work.
class BareContestant < Contestant
  def bare? = true
end
