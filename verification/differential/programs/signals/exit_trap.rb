# frozen_string_literal: true

# trap("EXIT") runs at the end

trap("EXIT") { say :exit }
task { sleep(0.01) }.join
say :main
