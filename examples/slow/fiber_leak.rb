# frozen_string_literal: true

# A shop that starts a fiber with each order, to send a mail when the parcel has been packed. No code ever says that
# it has, so the fibers stay. The page shows them. It needs the gem puma.
#
#   ruby -Ilib examples/slow/fiber_leak.rb

require_relative "support/shop"

class Parcel
  def initialize = @packed = Thread::Queue.new

  def send_mail_when_packed
    Fiber.schedule do
      Heddle.annotate("mail about a parcel")
      # The fault: nothing is ever pushed.
      @packed.pop
    end
  end
end

Shop.open("/orders/#" => 3, "/products/#" => 5) do |path|
  Parcel.new.send_mail_when_packed if path.start_with?("/orders")
  "Thank you."
end
