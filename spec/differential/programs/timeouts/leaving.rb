# frozen_string_literal: true

# A block leaves Timeout.timeout by break, next, return and throw, and no limit comes later

def returned = Timeout.timeout(0.05) { return :returned }
say returned, Timeout.timeout(0.05) { break :broken }, Timeout.timeout(0.05) { next :next }
say catch(:out) { Timeout.timeout(0.05) { throw :out, :thrown } }
say attempt { Timeout.timeout(0.05) { raise ArgumentError, "own" } }
say attempt { sleep(0.1) && :slept }
