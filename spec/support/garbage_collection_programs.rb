# frozen_string_literal: true

require "json"
require "socket"
require "stringio"
require "timeout"

# Small programs, one for each kind of wait, each with what it returns within `Heddle.run`.
module GarbageCollectionPrograms
  PATH = __FILE__

  # Returns the class of the error that ends the wait.
  RESCUED = lambda do |error, &wait|
    wait.call
  rescue error => e
    e.class
  end

  WAITS = {
    "sleep" => [2, -> { [sleep(a_moment), sleep(0)].size }],
    "queues" => ["item", lambda {
      queue = Queue.new
      Fiber.schedule { queue.push("item") }
      queue.pop(timeout: 60)
    }],
    "locks" => ["locked", lambda {
      lock = Mutex.new
      Fiber.schedule { lock.synchronize { sleep(a_moment) } }
      lock.synchronize { "locked" }
    }],
    "threads" => ["value", -> { Thread.new { "value" }.value }],
    "processes" => [true, -> { Process.wait2(spawn("true")).last.success? }],
    "names" => [1, -> { Addrinfo.getaddrinfo("127.0.0.1", 1, nil, :STREAM).size }],
    "generators" => ["made", -> { Enumerator.new { |yielder| yielder << "made".tap { sleep(a_moment) } }.next }]
  }.freeze

  TRANSFERS = {
    "pipes" => ["bytes", lambda {
      IO.pipe do |reader, writer|
        Fiber.schedule do
          writer.write("bytes")
          writer.close
        end
        reader.read
      end
    }],
    "pipes while both ends wait" => [70_000, lambda {
      IO.pipe do |reader, writer|
        Fiber.schedule do
          writer.write("x" * 70_000)
          writer.close
        end
        reader.read.bytesize
      end
    }],
    "sockets" => ["echo", lambda {
      UNIXSocket.pair.then do |one, other|
        Fiber.schedule { other.write(other.readpartial(4)) }
        one.write("echo")
        one.readpartial(4).tap { [one, other].each(&:close) }
      end
    }],
    "files" => ["# frozen_string_literal: true\n", -> { File.read(PATH, 30) }],
    "IO.select" => [1, -> { IO.pipe { |reader, writer| writer.write("x") && IO.select([reader]).flatten.size } }],
    "IO.select that waits" => [1, lambda {
      IO.pipe do |reader, writer|
        Fiber.schedule { writer.write("x") }
        IO.select([reader], [], [], 60).flatten.size
      end
    }],
    "IOs that are closed" => [[IOError], lambda {
      seen = []
      IO.pipe do |reader, _|
        Fiber.schedule { seen << RESCUED.call(IOError) { reader.read } }
        reader.close
        sleep(a_moment)
      end
      seen
    }]
  }.freeze

  ENDS = {
    "timeouts" => [Timeout::Error, -> { RESCUED.call(Timeout::Error) { Timeout.timeout(0.001) { sleep } } }],
    "raise" => [[RuntimeError], lambda {
      seen = []
      fiber = Fiber.schedule { seen << RESCUED.call(RuntimeError) { sleep } }
      fiber.raise("interrupted")
      seen
    }],
    "fibers that are killed" => [false, -> { Fiber.schedule { sleep }.kill.alive? }],
    "a fiber that closes its scheduler" => [nil, -> { Fiber.schedule { sleep(a_moment) } && Fiber.scheduler.close }],
    # The scheduler doesn't suspend a fiber that has resumed another one: a fiber made for this purpose raises in it.
    "time limits during a generator's wait" => [RuntimeError, lambda {
      RESCUED.call(RuntimeError) { Heddle.cancel_after(0.001, RuntimeError) { Enumerator.new { sleep }.next } }
    }],
    "time limits within others" => ["moved", lambda {
      Heddle.move_on_after(0.001, value: "moved") do
        Heddle.cancel_after(60) { IO.pipe { |reader, _| reader.read(1) } }
      end
    }],
    "time limits that are moved" => ["moved", lambda {
      Heddle.move_on_after(60, value: "moved") { |deadline| deadline.reset(0.001) && Queue.new.pop }
    }]
  }.freeze

  TREES = {
    "a child" => ["work", -> { Heddle.await(Heddle.spin { "work" }) }],
    "several children" => [[0, 1, 2], lambda {
      Heddle.await_all(*Array.new(3) { |number| Heddle.spin { Heddle.snooze || number } })
    }],
    "a scope" => ["value", -> { Heddle.run { Fiber.schedule { sleep(0) } && Heddle.await(Heddle.spin { "value" }) } }]
  }.freeze

  REPORTS = {
    "Heddle.fibers" => [%w[Queue#pop sleep], lambda {
      fibers = [Heddle.spin(background: true) { sleep }, Heddle.spin(name: "x", background: true) { Queue.new.pop }]
      Heddle.snooze
      found = Heddle.fibers.select { |info| fibers.include?(info.fiber) }
      found.map { |info| info.waiting_for[/\S+/] }.sort
    }],
    "Heddle.dump" => [true, -> { StringIO.new.tap { |io| Heddle.dump(io) }.string.include?("Schedulers: ") }],
    # Few events: each takes many allocations to write. Under GC.stress these are collections, which are events, too.
    "Heddle.trace" => [true, lambda {
      io = StringIO.new
      Heddle.trace(io, events: 50) { Heddle.annotate("named") { Heddle.await(Heddle.spin { sleep(a_moment) }) } }
      io.string.include?(%("named"))
    }],
    "stats" => [1, -> { sleep(0) && Fiber.scheduler.stats[:fibers][:running] }]
  }.freeze

  ALL = { **WAITS, **TRANSFERS, **ENDS, **TREES, **REPORTS }.freeze
end
