# frozen_string_literal: true

# Raised by a measurement that can't be had on this machine: a tool that isn't installed, a limit that is too low. The
# report leaves it out and names it with this message. It is no failure: a failure is a workload whose sums are wrong.
class LeftOut < StandardError; end
