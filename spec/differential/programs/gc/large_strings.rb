# frozen_string_literal: true

# Strings that grow, shrink and are shared while they are written keep their bytes

one, other = UNIXSocket.pair
reading = task { other.read }
text = +"a" * 300_000
writing = task { one.write(text).tap { one.close } }
settle(0.005)
say error_of { text.replace("b" * 300_000) }.class
say writing.value, reading.value.bytesize
