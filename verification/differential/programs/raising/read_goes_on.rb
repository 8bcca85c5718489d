# frozen_string_literal: true

# A read that is tried again after an exception loses no bytes

one, other = UNIXSocket.pair
text = +""
interruptions = 0
reader = task do
  text << other.readpartial(100) until text.end_with?("END")
rescue RuntimeError
  interruptions += 1
  retry
end
expected = +""
10.times do |number|
  expected << "chunk #{number} "
  one.write("chunk #{number} ")
  sleep(0.001) until text == expected
  settle
  reader.raise("poke")
  # A thread that has read the next chunk when the exception comes loses it.
  sleep(0.001) until interruptions > number
end
one.write("END")
reader.join
say text == "#{expected}END"
