# frozen_string_literal: true

# IO#read ends with IOError when a fiber of another scheduler closes the IO

one, other = UNIXSocket.pair
waiter = task { attempt { one.read(100) } }
elsewhere { settle && one.close }.join
say waiter.value, attempt { other.write("x") }
