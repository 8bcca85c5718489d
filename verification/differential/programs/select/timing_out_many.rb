# frozen_string_literal: true

# Many tasks select with limits of their own

reader, _writer = IO.pipe
say Array.new(20) { |number| task { IO.select([reader], nil, nil, 0.005 + (number * 0.001)) } }.map(&:value).uniq
