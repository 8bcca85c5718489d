# frozen_string_literal: true

# Kernel#sleep takes and refuses what it does on a thread

[0, 0.0, 0.001, 1r / 1000, -1, -0.1, "1", Object.new, Float::NAN, []].each do |duration|
  # Ruby counts full seconds of the clock, so a short sleep takes 0 or 1.
  say attempt { sleep(duration).class }.to_s
end
