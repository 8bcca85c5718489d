# frozen_string_literal: true

# Tasks that wait for any child get one each

waiters = Array.new(4) { task { sleep(0.01) && Process.wait2(-1).last.exitstatus } }
4.times { |number| spawn("sleep 0.0#{number + 2}; exit #{number}") }
say waiters.map(&:value).sort
