# frozen_string_literal: true

# `rescue => e` within Timeout.timeout does not see the limit

inner = nil
outcome = attempt do
  Timeout.timeout(0.05) do
    sleep
  rescue => e
    inner = e
    sleep(0.2)
    :swallowed
  end
end
say outcome, inner
