# frozen_string_literal: true

# Echoes work under GC.stress

one, other = UNIXSocket.pair
echo = task { 5.times { other.write(other.readpartial(100).upcase) } }
GC.stress = true
answers = Array.new(5) { |number| one.write("text #{number}") && one.readpartial(100) }
GC.stress = false
say answers == Array.new(5) { |number| "TEXT #{number}" }, echo.join.alive?
