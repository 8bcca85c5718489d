# frozen_string_literal: true

# A read that is tried again after an exception loses no bytes

one, other = UNIXSocket.pair
reader = task do
  text = +""
  begin
    Thread.handle_interrupt(RuntimeError => :on_blocking) do
      text << other.readpartial(100) until text.end_with?("END")
    end
  rescue RuntimeError
    retry
  end
  text
end
expected = +""
50.times do |number|
  expected << "chunk #{number} "
  one.write("chunk #{number} ")
  sleep(0.002)
  reader.raise("poke") if number.odd?
end
one.write("END")
say reader.value == "#{expected}END"
