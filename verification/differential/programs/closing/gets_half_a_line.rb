# frozen_string_literal: true

# IO#gets of which half a line has come leaves the program's Strings alone after a close

one, other = UNIXSocket.pair
number = other.fileno
waiter = task { attempt { other.gets } }
settle
one.write("half a line")
settle
other.close
pairs = retake(number)
strings = Array.new(300) { |index| index.to_s * 3000 }
whole = intact?(pairs)
one.write("x" * 1000) rescue say $!.class
settle
say whole, waiter.value, strings.each_with_index.all? { |string, index| string == index.to_s * 3000 }
