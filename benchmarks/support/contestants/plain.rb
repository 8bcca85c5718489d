# frozen_string_literal: true

require_relative "contestant"

# Whoever computes does so at once and to the end: nobody is beside. CPU time is told relative to this.
class PlainContestant < Contestant
  def alone? = true

  def run = yield

  def compute = yield
end
