# frozen_string_literal: true

# A retry within Timeout.timeout does not outlive the limit

tries = 0
outcome = attempt do
  Timeout.timeout(0.05) do
    tries += 1
    sleep
  rescue StandardError
    retry if tries < 5
  end
end
say outcome, tries
