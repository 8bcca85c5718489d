# frozen_string_literal: true

# A DRb server: drb.rb PORT

require "drb"

# The object that clients call.
class Front
  def wait(seconds) = sleep(seconds) && :waited

  def add(one, other) = one + other

  def each_of(items, &) = items.each(&)
end

DRb.start_service("druby://127.0.0.1:#{ARGV.fetch(0)}", Front.new)
DRb.thread.join
