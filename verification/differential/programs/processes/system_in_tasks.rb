# frozen_string_literal: true

# Each task's system has its own result

say Array.new(8) { |number| task { system("sleep 0.01; exit #{number % 2}") } }.map(&:value)
