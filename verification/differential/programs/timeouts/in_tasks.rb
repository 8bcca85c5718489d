# frozen_string_literal: true

# Many tasks with limits of their own end by these

tasks = Array.new(20) do |number|
  task do
    attempt do
      Timeout.timeout(number.even? ? 0.01 + (number * 0.001) : 20) do
        number.even? ? sleep : sleep(0.001) && number
      end
    end
  end
end
say tasks.map(&:value)
