# frozen_string_literal: true

# A task closes the IO that it has just read from

one, other = UNIXSocket.pair
echo = task do
  text = one.readpartial(10)
  one.write(text.upcase)
  one.close
  [one.closed?, attempt { one.readpartial(1) }]
end
other.write("abc")
say echo.value, other.read
