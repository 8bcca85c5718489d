# frozen_string_literal: true

# IO.select of nothing sleeps for its limit

say IO.select(nil, nil, nil, 0.01), IO.select([], [], [], 0.01), IO.select([], nil, nil, 0)
