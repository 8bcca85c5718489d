# frozen_string_literal: true

require_relative "contestant"

# itsi-scheduler: epoll by mio, in Rust.
class ItsiContestant < Contestant
  def prepare = require("itsi/scheduler")

  def version = "itsi-scheduler #{Itsi::Scheduler::VERSION}"

  def scheduler = Itsi::Scheduler.new
end
