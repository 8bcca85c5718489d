# frozen_string_literal: true

# Many tasks with limits of their own end by these

tasks = Array.new(20) do |number|
  task { attempt { Timeout.timeout(number.even? ? 0.01 + (number * 0.001) : 5) { number.even? ? sleep : sleep(0.001) && number } } }
end
say tasks.map(&:value)
