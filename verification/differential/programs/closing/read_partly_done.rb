# frozen_string_literal: true

# IO#read of which half has come gets nothing from the connection that takes the closed one's number

one, other = UNIXSocket.pair
number = other.fileno
waiter = task { attempt { other.read(100) } }
settle
one.write("p" * 50)
settle
other.close
pairs = retake(number)
say intact?(pairs), waiter.value
settle
say intact?(pairs)
