# frozen_string_literal: true

# A shop in which one path computes for a tenth of a second. Its requests take most of the thread's time, and wait for
# each other. Heddle preempts them, so all other requests are fast. The dashboard says so. It needs the gem puma.
#
#   ruby -Ilib examples/slow/one_path_computes.rb

require_relative "support/shop"

# The fault: it is made anew for each request.
def statistics = 400_000.times.sum { |number| number.digits.sum }

Shop.open("/statistics" => 6, "/products/#" => 10) do |path|
  path == "/statistics" ? statistics.to_s : "A loom."
end
