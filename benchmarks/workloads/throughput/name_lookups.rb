# frozen_string_literal: true

require "socket"
require_relative "../support/repeating"
require_relative "../support/tally"

# 20 fibers look up a name that /etc/hosts has. No server is asked, so this is the cost of the C library, and of the
# thread in which a scheduler calls it.
#
# An operation is a look-up that has found an address of this host.
class NameLookups
  include Repeating

  NAME = "localhost"

  def initialize(fibers: 20, seconds: 1)
    @fibers = fibers
    @seconds = seconds * SCALE
  end

  def once(contestant)
    tally = Tally.new(@fibers, seconds: @seconds)
    contestant.run do
      @fibers.times { Fiber.schedule { tally.repeat { found? } } }
      tally.start
    end
    tally.result
  end

  private

  def found? = Addrinfo.getaddrinfo(NAME, 80, nil, :STREAM).any? { |address| loopback?(address) }

  def loopback?(address) = address.ipv4_loopback? || address.ipv6_loopback?
end
