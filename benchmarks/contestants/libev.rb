# frozen_string_literal: true

require_relative "contestant"

# libev_scheduler: epoll by libev, in C.
class LibevContestant < Contestant
  def prepare = require("libev_scheduler")

  # Its constant does not tell the release that is installed.
  def version = "libev_scheduler #{Gem.loaded_specs.fetch("libev_scheduler").version}"

  def scheduler = Libev::Scheduler.new
end
