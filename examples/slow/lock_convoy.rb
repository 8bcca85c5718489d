# frozen_string_literal: true

# A shop in which every cart writes to one log, with a lock around it, and waits for the log's disk meanwhile. So the
# carts follow each other through the lock, in a long convoy. The page says so. It needs the gem puma.
#
#   ruby -Ilib examples/slow/lock_convoy.rb

require_relative "support/shop"

LOG = Mutex.new

def write_to_disk = sleep(0.05)

Shop.open("/carts/#" => 30, "/products/#" => 10) do |path|
  # The fault: the lock is held during the wait.
  LOG.synchronize { write_to_disk } if path.start_with?("/carts")
  "A loom."
end
