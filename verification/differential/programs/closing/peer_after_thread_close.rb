# frozen_string_literal: true

# The peer cannot send to a socket that another thread has closed

refused = Array.new(20) do
  one, other = UNIXSocket.pair
  waiter = task { attempt { other.read(1) } }
  settle
  Thread.new { other.close }.join
  sent = attempt { one.write("x") }
  waiter.join
  sent
end
say refused.uniq
