# frozen_string_literal: true

# Timeout.timeout around a run with tasks ends it

say attempt { Timeout.timeout(0.05) { scheduled { task { sleep(0.2) } && sleep } } }
say scheduled { :again }
