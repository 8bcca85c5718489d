# frozen_string_literal: true

# Timeout.timeout with a class raises that class inside

class Late < StandardError
end
seen = nil
say attempt { Timeout.timeout(0.02, Late) { sleep } }
say attempt { Timeout.timeout(0.02, Late, "too late") { sleep } }
say attempt {
  Timeout.timeout(0.02, Late) do
    sleep
  rescue Late => e
    seen = e.class
    :rescued
  end
}, seen
