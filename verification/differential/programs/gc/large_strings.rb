# frozen_string_literal: true

# Strings that grow, shrink and are shared while they are written keep their bytes

one, other = UNIXSocket.pair
text = +"a" * 300_000
writing = task { one.write(text).tap { one.close } }
settle
say error_of { text.replace("b" * 300_000) }
text = other.read
say writing.value, text.bytesize, text.count("a")
