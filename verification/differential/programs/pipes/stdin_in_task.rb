# frozen_string_literal: true

# A task reads $stdin while others sleep

sleeper = task { sleep(0.02) && :slept }
say task { $stdin.each_line(chomp: true).to_a }.value, sleeper.value
