# frozen_string_literal: true

# Reads that wait survive a compaction

sockets = Array.new(20) { UNIXSocket.pair }
readers = sockets.map { |_, other| task { other.read(1000) } }
settle
3.times { GC.verify_compaction_references(expand_heap: false, toward: :empty) rescue GC.start }
sockets.each_with_index { |(one, _), number| one.write(number.to_s[0] * 1000) }
say readers.each_with_index.all? { |reader, number| reader.value == number.to_s[0] * 1000 }
