# frozen_string_literal: true

# A block leaves Timeout.timeout by break, next, return and throw, and no limit comes later

def returned = Timeout.timeout(1) { return :returned }
say returned, Timeout.timeout(1) { break :broken }, Timeout.timeout(1) { next :next }
say catch(:out) { Timeout.timeout(1) { throw :out, :thrown } }
say attempt { Timeout.timeout(1) { raise ArgumentError, "own" } }
say attempt { sleep(1.1) && :slept }
