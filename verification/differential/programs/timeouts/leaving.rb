# frozen_string_literal: true

# A block leaves Timeout.timeout by break, next, return and throw, and no limit comes later

def returned = Timeout.timeout(20) { return :returned }
say returned, Timeout.timeout(20) { break :broken }, Timeout.timeout(20) { next :next }
say catch(:out) { Timeout.timeout(20) { throw :out, :thrown } }
say attempt { Timeout.timeout(20) { raise ArgumentError, "own" } }
def left = Timeout.timeout(0.1) { return :left }
attempt { left }
say attempt { sleep(0.2) && :slept }
