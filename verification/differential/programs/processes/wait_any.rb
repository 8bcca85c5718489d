# frozen_string_literal: true

# Tasks that wait for any child get one each

gates = Array.new(4) { IO.pipe }
gates.each_with_index { |(reader, _), number| spawn("read line; exit #{number}", in: reader) }
waiters = Array.new(4) { task { Process.wait2(-1).last.exitstatus } }
settle
gates.map(&:last).each(&:close)
say waiters.map(&:value).sort
