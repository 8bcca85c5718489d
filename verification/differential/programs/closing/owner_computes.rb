# frozen_string_literal: true

# Bytes stay with their connection when a thread closes an IO whose owner computes between its reads

outcomes = Array.new(5) do |round|
  one, other = UNIXSocket.pair
  number = other.fileno
  waiter = task { error_of { other.read(100) } }
  settle
  one.write("p" * 50)
  closer = Thread.new do
    other.close
    retake(number)
  end
  Integer.sqrt(round) until closer.stop? || !closer.alive?
  [intact?(closer.value), waiter.value]
end
say outcomes.uniq
