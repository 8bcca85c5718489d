# frozen_string_literal: true

# Each `ensure` within Timeout.timeout runs once, and may wait

order = []
say attempt {
  Timeout.timeout(0.02) do
    sleep
  ensure
    order << :begun
    sleep(0.02)
    order << :ended
  end
}, order
