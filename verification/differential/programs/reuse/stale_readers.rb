# frozen_string_literal: true

# Tasks that go on reading a closed IO never see its successor's bytes

stolen = Array.new(5) do
  one, other = UNIXSocket.pair
  number = other.fileno
  seen = Thread::Queue.new
  stale = task do
    5.times { (seen << attempt { other.readpartial(100) }.to_s) && sleep(0.001) }
  end
  settle
  other.close
  pairs = retake(number)
  pairs.each { |pair| pair.each { |socket| socket.write("SECRET") } }
  stale.join
  kept = pairs.flatten.map { |socket| socket.read_nonblock(100, exception: false) }
  pairs.flatten.each(&:close)
  one.close
  [Array.new(seen.size) { seen.pop }.grep(/SECRET/).size, kept.uniq]
end
say stolen.uniq
