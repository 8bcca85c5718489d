# frozen_string_literal: true

# A shop with one page that computes for a tenth of a second. It takes most of the thread's time, and its requests wait
# for each other. The other pages are fast all the same, as it is preempted. The page says so. It needs the gem puma.
#
#   ruby -Ilib examples/slow/one_path_computes.rb

require_relative "support/shop"

# The fault: it is made anew for each request.
def statistics = 400_000.times.sum { |number| number.digits.sum }

Shop.open("/statistics" => 2, "/products/#" => 10) do |path|
  path == "/statistics" ? statistics.to_s : "A loom."
end
