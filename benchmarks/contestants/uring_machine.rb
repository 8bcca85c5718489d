# frozen_string_literal: true

require_relative "contestant"

# UringMachine's scheduler: io_uring, in C.
class UringMachineContestant < Contestant
  def prepare
    require "uringmachine"
    require "uringmachine/fiber_scheduler"
  end

  def version = "UringMachine #{UringMachine::VERSION}"

  def scheduler = UringMachine::FiberScheduler.new
end
