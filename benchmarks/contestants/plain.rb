# frozen_string_literal: true

require_relative "contestant"

# Does the CPU-bound work at once and alone, without a scheduler. CPU time is reported relative to this.
class PlainContestant < Contestant
  def alone? = true

  def run = yield

  def compute = yield
end
