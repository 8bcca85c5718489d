# frozen_string_literal: true

# What `rake memory:valgrind` runs: threads whose schedulers wait, close, are killed and collected. valgrind makes it
# some thirty times slower, so each part is small. It prints "done" at its end.

require "heddle"

def in_thread(**options, &) = Thread.new { Heddle.run(**options, &) }.join

def transfer
  IO.pipe do |reader, writer|
    received = Fiber.schedule { reader.read }
    Fiber.schedule { 5.times { writer.write("x" * 20_000) } && writer.close }
    sleep(0) while received.alive?
  end
end

def close_under_way
  reader, writer = IO.pipe
  fiber = Fiber.schedule do
    reader.read(1)
  rescue IOError
    nil
  end
  sleep(0)
  reader.close
  sleep(0) while fiber.alive?
  writer.close
end

def kill_under_way
  begun = Queue.new
  thread = Thread.new do
    Heddle.run do
      Fiber.schedule { sleep }
      begun.push(true)
      IO.pipe { |reader, _| reader.read(1) }
    end
  end
  begun.pop
  thread.kill.join
end

def compute
  Heddle.await_all(*Array.new(3) { Heddle.spin { 2000.times { |number| "a#{number}" } } })
end

2.times do
  in_thread { sleep(0.0001) }
  in_thread { transfer }
  in_thread { close_under_way }
  in_thread(preempt: :all, quantum: 0.001) { compute }
  in_thread { Heddle.run { Heddle.spin(background: true) { sleep } && sleep(0) && Heddle.fibers.size } }
  # Under valgrind 3.19 a kill does not reach a thread that waits in io_uring_enter.
  kill_under_way if ENV["HEDDLE_BACKEND"] == "poll"
  GC.start
end
GC.verify_compaction_references(toward: :empty, expand_heap: true) if GC.respond_to?(:verify_compaction_references)
in_thread { transfer }
GC.start
puts "done"
