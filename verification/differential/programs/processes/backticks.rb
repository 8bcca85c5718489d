# frozen_string_literal: true

# Backticks in tasks return their own output

say Array.new(8) { |number| task { `sleep 0.01; echo #{number}; exit #{number}` } }.map(&:value)
say attempt { `/missing/program` }
