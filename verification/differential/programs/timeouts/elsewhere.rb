# frozen_string_literal: true

# Timeout.timeout in a thread with a scheduler of its own

say elsewhere { attempt { Timeout.timeout(0.02) { task { sleep(0.05) }.value && sleep } } }.value
