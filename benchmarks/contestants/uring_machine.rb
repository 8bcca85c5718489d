# frozen_string_literal: true

require_relative "contestant"

# UringMachine's scheduler: io_uring, in C.
class UringMachineContestant < Contestant
  # 10,000 fibers that begin to wait at once do not fit into the default of 4,096.
  SUBMISSION_ENTRIES = 16_384

  # @param ring [Hash] the options of the ring; empty for UringMachine's own
  def initialize(name, title, **ring)
    super(name, title)
    @ring = ring
  end

  def prepare
    require "uringmachine"
    require "uringmachine/fiber_scheduler"
  end

  def version = "UringMachine #{UringMachine::VERSION}"

  def scheduler = UringMachine::FiberScheduler.new(UringMachine.new(**@ring))
end
