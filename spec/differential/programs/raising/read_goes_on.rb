# frozen_string_literal: true

# A read that is tried again after an exception loses no bytes

one, other = UNIXSocket.pair
text = +""
reader = task do
  text << other.readpartial(100) until text.end_with?("END")
rescue RuntimeError
  retry
end
expected = +""
10.times do |number|
  expected << "chunk #{number} "
  one.write("chunk #{number} ")
  sleep(0.001) until text == expected
  settle(0.005)
  reader.raise("poke")
  settle(0.005)
end
one.write("END")
reader.join
say text == "#{expected}END"
