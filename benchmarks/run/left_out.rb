# frozen_string_literal: true

# Raised by a measurement that this machine can't do: a tool is not installed, or a limit is too low. The report lists
# the measurement as left out, with this message. That is no failure: a workload with wrong sums is one.
class LeftOut < StandardError; end
