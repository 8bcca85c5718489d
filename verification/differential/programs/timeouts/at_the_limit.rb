# frozen_string_literal: true

# A block that ends near its limit either ends or times out, once

tallies = Array.new(50) do |round|
  attempt { Timeout.timeout(0.005) { sleep(0.0049 + (round * 0.000004)) && :slept } }
end
say tallies.map { |outcome| [:slept, "Timeout::Error: execution expired"].include?(outcome) }.uniq
say attempt { sleep(0.05) && :quiet }
