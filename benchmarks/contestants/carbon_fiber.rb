# frozen_string_literal: true

require_relative "contestant"

# carbon_fiber's scheduler: io_uring by libxev, in Zig. CARBON_FIBER_SRC is a checkout that was compiled for this Ruby.
class CarbonFiberContestant < Contestant
  def prepare
    checkout = ENV.fetch("CARBON_FIBER_SRC") { raise NotInstalled, "CARBON_FIBER_SRC is not set" }
    $LOAD_PATH.unshift(File.join(checkout, "lib"))
    require "carbon_fiber"
    require "carbon_fiber/version"
    backend = CarbonFiber::Native.backend
    raise NotInstalled, "carbon_fiber's native part is not compiled: its backend is #{backend}" if backend != "libxev"
  end

  def version = "carbon_fiber #{CarbonFiber::VERSION}"

  def scheduler = CarbonFiber::Scheduler.new
end
