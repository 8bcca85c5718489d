# frozen_string_literal: true

# A Ractor talks over sockets, sleeps, times out and runs programs

Warning[:experimental] = false
ractor = Ractor.new do
  one, other = UNIXSocket.pair
  one.write("text")
  one.close
  [other.read, sleep(0.001).class, system("true"), Queue.new.pop(timeout: 0.001), IO.select(nil, nil, nil, 0.001)]
end
say ractor.respond_to?(:value) ? ractor.value : ractor.take
