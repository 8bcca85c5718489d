# frozen_string_literal: true

# A shop that makes its pictures smaller with a library written in C, which knows no fibers: the thread waits in it, and
# all other requests wait with it. The page says so. It needs the gems puma and fiddle.
#
#   ruby -Ilib examples/slow/blocked_thread.rb

require_relative "support/shop"
require "fiddle"

# As such a library would: it waits, and no fiber can run.
WAIT = Fiddle::Function.new(Fiddle::Handle::DEFAULT["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)

# The fault.
def thumbnail = WAIT.call(300_000)

Shop.open("/pictures/#" => 2, "/products/#" => 10) do |path|
  thumbnail if path.start_with?("/pictures")
  "A loom."
end
