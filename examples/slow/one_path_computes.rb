# frozen_string_literal: true

# A shop with one page that computes for most of a second. Other pages need hardly any time, and are slow all the same:
# they wait for their turn. The page says so. It needs the gem puma.
#
#   ruby -Ilib examples/slow/one_path_computes.rb

require_relative "support/shop"

# The fault: it is made anew for each request.
def statistics = 400_000.times.sum { |number| number.digits.sum }

Shop.open("/statistics" => 2, "/products/#" => 10) do |path|
  path == "/statistics" ? statistics.to_s : "A loom."
end
