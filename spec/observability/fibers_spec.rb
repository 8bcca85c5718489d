# frozen_string_literal: true

require "socket"

RSpec.describe "Heddle.fibers" do
  def info_of(fiber)
    Heddle.fibers.find { |info| info.fiber.equal?(fiber) }
  end

  # What is told about a fiber that runs the block, when the fiber waits.
  def info_on(wait)
    Heddle.run do
      fiber = Heddle.spin(background: true, &wait)
      pass_until { Heddle.state(fiber) == :waiting }
      info_of(fiber).then { |info| [info, info.backtrace] }
    end
  end

  it "has the fibers of all schedulers" do
    started = Queue.new
    thread = scheduled_thread { Fiber.schedule { started.push(Fiber.current) && sleep } }
    theirs = started.pop
    told = Heddle.run { [Fiber.current, Fiber.schedule { sleep a_moment }, theirs] - Heddle.fibers.map(&:fiber) }
    thread.kill.join

    expect(told).to be_empty
  end

  it "is empty without a scheduler" do
    expect(Heddle.fibers).to eq([])
  end

  it "has no fiber that was killed before it has begun" do
    infos = Heddle.run do
      fibers = Array.new(2) { Heddle.spin(background: true) { sleep } }
      fibers.first.kill
      fibers.map { |fiber| info_of(fiber) }
    end

    expect(infos).to match [nil, be_a(Heddle::FiberInfo)]
  end

  it "tells a fiber's object_id, thread, scheduler and parent" do
    expected, told = Heddle.run do
      fiber = Heddle.spin(background: true) { sleep }
      info = info_of(fiber)
      [[fiber.object_id, Thread.current, Fiber.scheduler, Fiber.current.object_id],
       [info.id, info.thread, info.scheduler, info.parent]]
    end

    expect(told).to eq(expected)
  end

  it "has frozen objects" do
    expect(info_on(-> { sleep }).first).to be_frozen
  end

  it "tells that the calling fiber runs and waits for nothing" do
    info = Heddle.run { info_of(Fiber.current) }

    expect([info.state, info.waiting_for]).to eq([:running, nil])
  end

  it "tells that a fiber of Heddle.spin has not started" do
    info = Heddle.run { info_of(Heddle.spin(background: true) { nil }) }

    expect([info.state, info.waiting_for, info.backtrace]).to eq([:runnable, "its first time slice", []])
  end

  it "tells that a fiber was preempted" do
    info = Heddle.run do
      stop = false
      fiber = YieldingFiber.schedule { nil until stop }
      sleep 0.001 until info_of(fiber).waiting_for
      info_of(fiber).tap { stop = true }
    end

    expect([info.state, info.waiting_for]).to eq([:runnable, "preempted"])
  end

  it "tells for how long a fiber has waited" do
    told, least = Heddle.run do
      fiber = Heddle.spin(background: true) { sleep }
      Heddle.snooze
      started = Clock.now
      sleep a_moment
      least = Clock.now - started
      [info_of(fiber).seconds, least]
    end

    expect(told).to be >= least
  end

  pipe = /descriptor \d+ \(pipe\)/
  {
    "sleep" => [-> { sleep }, /sleep/],
    "sleep with a time" => [-> { sleep 60 }, /sleep, (60\.0|[1-5]?\d\.\d) s left/],
    "Queue#pop" => [-> { Queue.new.pop }, /Queue#pop( on .*)?/],
    "Queue#pop with a timeout" => [-> { Queue.new.pop(timeout: 60) }, /Queue#pop( on .*)?, \d+\.\d s left/],
    "SizedQueue#push" => [-> { SizedQueue.new(1).push(1).push(2) }, /SizedQueue#push.* \(1 of 1\)/],
    "ConditionVariable#wait" => [
      -> { Mutex.new.then { |mutex| mutex.synchronize { ConditionVariable.new.wait(mutex) } } },
      /ConditionVariable#wait/
    ],
    "Heddle.every" => [-> { Heddle.every(60) { nil } }, /Heddle\.every, \d+\.\d s left/],
    "Semaphore#acquire" => [-> { Heddle::Semaphore.new(1).tap(&:acquire).acquire }, /Heddle::Semaphore#acquire/],
    "IO#read" => [-> { IO.pipe { |reader, _| reader.read(1) } }, /reading #{pipe}/],
    "IO#wait_readable" => [-> { IO.pipe { |reader, _| reader.wait_readable } }, /reading #{pipe}/],
    "IO#write" => [
      -> { IO.pipe { |_, writer| writer.write("x" * 1_000_000) } }, /writing #{pipe}/
    ],
    "IO.select" => [-> { IO.pipe { |reader, _| IO.select([reader]) } }, /IO\.select/],
    "TCPServer#accept" => [
      -> { TCPServer.open("127.0.0.1", 0, &:accept) }, /reading socket 127\.0\.0\.1:\d+/
    ]
  }.each do |kind, (wait, expected)|
    it "tells that a fiber waits in #{kind}" do
      info, = info_on(wait)

      expect(info.waiting_for).to match(/\A#{expected}\z/)
    end

    it "has a backtrace without Heddle's frames of a fiber in #{kind}" do
      _, backtrace = info_on(wait)

      expect([backtrace.grep(%r{/lib/heddle/|Heddle::Scheduler#}), backtrace.last])
        .to match([[], /fibers_spec\.rb:\d+:in/])
    end
  end

  it "tells to which peer a socket is connected" do
    told, port = Heddle.run do
      server = TCPServer.new("127.0.0.1", 0)
      fiber = Heddle.spin(background: true) { TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| socket.read(1) } }
      accepted = server.accept
      sleep 0.001 until info_of(fiber).waiting_for&.match?(/reading socket/)
      [info_of(fiber).waiting_for, server.addr[1]].tap { [accepted, server].each(&:close) }
    end

    expect(told).to match(/\Areading socket 127\.0\.0\.1:#{port}\z/)
  end

  it "leaves a socket open for which a fiber waits" do
    left, other = UNIXSocket.pair
    info_on(-> { left.wait_readable })
    GC.start
    other.write("a")

    expect(left.read(1)).to eq("a")
  ensure
    [left, other].each(&:close)
  end

  it "tells which process a fiber waits for" do
    told, pid = Heddle.run do
      pid = spawn("exec sleep 60")
      fiber = Heddle.spin(background: true) { Process.wait(pid) }
      pass_until { Heddle.state(fiber) == :waiting }
      [info_of(fiber).waiting_for, pid].tap { Process.kill(:KILL, pid) && Heddle.await(fiber) }
    end

    expect(told).to eq("process #{pid}")
  end

  it "tells which host name a worker resolves" do
    told = Heddle.run do
      told = nil
      until told
        # The fiber waits until the worker's answer is polled.
        fiber = Heddle.spin(background: true) { Fiber.scheduler.address_resolve("localhost") }
        Heddle.snooze
        told = info_of(fiber)&.waiting_for
        Heddle.await(fiber)
      end
      told
    end

    expect(told).to eq("worker: resolving localhost")
  end

  it "tells which thread a fiber joins" do
    told, thread = Heddle.run do
      thread = Thread.new { sleep }
      fiber = Heddle.spin(background: true) { thread.join }
      pass_until { Heddle.state(fiber) == :waiting }
      [info_of(fiber).waiting_for, thread].tap { thread.kill }
    end

    expect(told).to start_with("Thread#join of #{thread.inspect[/\A\S+/]}")
  end

  it "tells which fiber another one awaits" do
    told, child = Heddle.run do
      child = Heddle.spin(name: "child", background: true) { sleep }
      fiber = Heddle.spin(background: true) { Heddle.await(child) }
      pass_until { Heddle.state(fiber) == :waiting }
      [info_of(fiber).waiting_for, child.object_id]
    end

    expect(told).to eq("Heddle.await: fiber #{child} \"child\"")
  end

  it "tells which fiber holds the Mutex that another one waits for" do
    told, holder = Heddle.run do
      mutex = Mutex.new
      holder = Heddle.spin(name: "holder", background: true) { mutex.synchronize { sleep } }
      fiber = Heddle.spin(background: true) { mutex.lock }
      pass_until { Heddle.state(fiber) == :waiting }
      [info_of(fiber).waiting_for, holder.object_id]
    end

    expect(told).to start_with("Mutex held by fiber #{holder} \"holder\" at #{__FILE__}:")
  end

  it "tells which fiber another one has resumed" do
    told, expected = Heddle.run do
      inner = Fiber.new { sleep }
      fiber = Heddle.spin(background: true) { inner.resume }
      pass_until { info_of(inner) }
      [[info_of(fiber).waiting_for, info_of(inner).parent],
       ["fiber #{inner.object_id}, which it has resumed", fiber.object_id]]
    end

    expect(told).to eq(expected)
  end

  it "does not mix what a fiber waited for with what it does next", :regression do
    queue = Queue.new
    told = Heddle.run do
      fiber = Heddle.spin(name: "GET /first", background: true) do
        queue.pop
        Heddle.annotate("GET /second") { sleep }
      end
      pass_until { Heddle.state(fiber) == :waiting }
      # The fiber goes on while it is being described.
      allow(Heddle.const_get(:Backtraces)).to receive(:waiting_method).and_wrap_original do |original, other|
        queue.push(true)
        sleep(0)
        original.call(other)
      end
      info_of(fiber)
    end

    expect([told.name, told.waiting_for]).to match(["GET /first", /\AQueue(?!#)/])
  end

  it "can be called in a trap handler" do
    told = nil
    before = trap("USR1") { told = Heddle.fibers.size }
    expected = Heddle.run do
      Process.kill("USR1", Process.pid)
      sleep 0.001 until told
      Heddle.fibers.size
    end

    expect(told).to eq(expected)
  ensure
    trap("USR1", before || "DEFAULT")
  end

  it "has no fibers of the parent in a forked child" do
    count = Heddle.run do
      Heddle.spin(background: true) { sleep }
      Heddle.snooze
      in_child { Heddle.fibers.count { |info| info.waiting_for == "sleep" } }
    end

    expect(count).to eq(0)
  end

  it "tells about 5,000 fibers" do
    count = in_child do
      Heddle.run do
        5000.times { Heddle.spin(background: true) { sleep } }
        Heddle.snooze
        Heddle.fibers.count { |info| info.waiting_for == "sleep" }
      end
    end

    expect(count).to eq(5000)
  end
end
