# frozen_string_literal: true

# Kernel#sleep takes and refuses what it does on a thread

[0, 0.0, 0.001, 1r / 1000, -1, -0.1, "1", Object.new, Float::NAN, []].each do |duration|
  say attempt { sleep(duration) }.to_s.gsub(/0x\h+/, "0x")
end
