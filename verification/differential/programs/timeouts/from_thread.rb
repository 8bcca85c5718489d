# frozen_string_literal: true

# Timeout.timeout on a plain thread beside the program's tasks

sleeper = task { sleep(0.1) && :slept }
say Thread.new { attempt { Timeout.timeout(0.02) { sleep } } }.value, sleeper.value
