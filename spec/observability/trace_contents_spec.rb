# frozen_string_literal: true

RSpec.describe "Heddle.trace" do
  include Tracing
  include Computing

  def parts_of(named) = named["ran"] + named["runnable"] + named["waited"].values.sum

  it "shows a scheduler as a process that is named by its thread" do
    trace = traced { sleep a_moment }

    expect(trace.names("process")).to include("Heddle scheduler, thread main")
  end

  describe "of fibers" do
    it "has a track for each, named by Heddle.annotate or its number" do
      ids = nil
      trace = traced do
        fibers = [Heddle.spin(name: "worker", background: true) { sleep a_moment }, Heddle.spin { sleep a_moment }]
        ids = fibers.map(&:object_id)
        Heddle.await_all(*fibers)
      end

      expect(ids.map { |id| trace.name_of(id) }).to eq ["worker", "fiber #{ids.last}"]
    end

    it "names those that were named before it began, and have ended since" do
      id = nil
      Heddle.run do
        queue = Queue.new
        fiber = Heddle.spin(name: "early", background: true) { queue.pop }
        id = fiber.object_id
        Heddle.snooze
        Heddle.trace(path) { (queue << 1) && Heddle.await(fiber) }
      end

      expect(TraceFile.read(path).name_of(id)).to eq "early"
    end

    it "names slices as the fiber is named at that time" do
      trace = traced do
        Heddle.await(Heddle.spin do
          Heddle.annotate("first") { sleep a_moment }
          Heddle.annotate("second") { sleep a_moment }
        end)
      end

      expect(trace.slices.map { |slice| slice["name"] }).to include("first", "second")
    end

    it "tells of each name what the fiber has spent its time on while it had the name" do
      trace = traced do
        Heddle.await(Heddle.spin do
          Heddle.annotate("first") do
            compute_for(0.002)
            sleep a_moment
            Queue.new.pop(timeout: 0.002)
          end
          Heddle.annotate("second") { Heddle.snooze }
        end)
      end
      first, second = trace.named.to_h.values_at("first", "second")

      expect(trace.named.map(&:first)).to eq %w[first second]
      expect(first).to include("ran" => be >= 0.002, "waited" => { "block" => be_positive, "sleep" => be_positive })
      expect(parts_of(first)).to be_within(1e-6).of(first["seconds"])
      expect(second).to include("waited" => {})
      expect(parts_of(second)).to be_within(1e-6).of(second["seconds"])
    end

    it "tells so of the names that they have when it begins, and when it ends" do
      Heddle.run do
        fiber = Heddle.spin(name: "early", background: true) { sleep }
        Heddle.snooze
        Heddle.trace(path) { sleep a_moment }
        Heddle.stop(fiber)
      end
      name, args = TraceFile.read(path).named.first

      expect(name).to eq "early"
      expect(args).to include("ran" => 0, "waited" => { "sleep" => args["seconds"] }, "seconds" => be_positive)
    end

    it "has slices that do not overlap, and waits in between" do
      trace = traced do
        fibers = Array.new(5) { Heddle.spin { 20.times { (Heddle.snooze || true) && sleep(a_moment) } } }
        Heddle.await_all(*fibers)
      end

      expect(trace.overlaps).to be_empty
      expect(trace.slices.size).to be > 200
    end

    it "shows only one slice at a time of all fibers of a scheduler" do
      trace = traced { Heddle.await_all(*Array.new(5) { Heddle.spin { 20.times { Heddle.snooze } } }) }
      ranges = trace.slices.map { |slice| TraceFile.range(slice) }.sort_by(&:begin)
      overlapping = ranges.each_cons(2).select { |one, other| other.begin + TraceFile::ROUNDING < one.end }

      expect(overlapping).to be_empty
    end

    it "shows those that wait for all of the time" do
      id = nil
      Heddle.run do
        fiber = Heddle.spin(background: true) { sleep }
        id = fiber.object_id
        Heddle.snooze
        Heddle.trace(path) { sleep a_moment }
        Heddle.stop(fiber)
      end
      waits = TraceFile.read(path).waits(id)

      expect(waits.map { |wait| wait["name"] }).to eq ["sleep"]
    end

    it "shows that the root fiber waits for the end of the others" do
      Heddle.trace(path) { Heddle.run { Fiber.schedule { sleep a_moment } } }

      expect(TraceFile.read(path).waits.map { |wait| wait["name"] }).to include("the end of the other fibers")
    end

    it "shows generators that wait" do
      trace = traced { Enumerator.new { |yielder| sleep(a_moment) && (yielder << 1) }.next }

      expect(trace.overlaps).to be_empty
      expect(trace.waits.map { |wait| wait["name"] }).to include("sleep", "a fiber that it has resumed")
    end
  end

  {
    "sleep" => -> { sleep a_moment },
    "Queue" => -> { Queue.new.pop(timeout: 0.001) },
    "Mutex" => lambda {
      lock = Mutex.new
      Heddle.spin(background: true) { lock.synchronize { sleep a_moment } } && Heddle.snooze
      lock.synchronize { nil }
    },
    "Thread" => lambda {
      gate = Queue.new
      Heddle.spin(background: true) { gate.push(:open) }
      Thread.new { gate.pop }.join
    },
    "Heddle.await" => -> { Heddle.await(Heddle.spin { sleep a_moment }) },
    "the end of its children" => -> { Heddle.spin { sleep a_moment } },
    /\Areading fd \d+\z/ => lambda {
      IO.pipe { |reader, writer| Heddle.spin(background: true) { writer.write("x") } && reader.readpartial(1) }
    },
    /\Awriting fd \d+\z/ => lambda {
      IO.pipe { |_, writer| writer.write_nonblock("x" * 1_000_000) && writer.wait_writable(0.001) }
    },
    "the addresses of a host" => -> { Socket.getaddrinfo("localhost", 80) },
    "IO.select" => -> { IO.pipe { |reader, _| IO.select([reader], nil, nil, 0.001) } },
    /\Aprocess \d+\z/ => lambda {
      IO.pipe do |input, output|
        process = Process.spawn("cat", in: input)
        # Runs when this fiber waits.
        Heddle.spin(background: true) { output.close }
        Process.wait(process)
      end
    }
  }.each do |name, program|
    it "tells that a fiber waits for #{name.inspect}" do
      id = nil
      trace = traced do
        fiber = Heddle.spin(background: true) { program.call }
        id = fiber.object_id
        Heddle.await(fiber)
      end

      expect(trace.waits(id).map { |wait| wait["name"] }).to include(match(name))
    end
  end

  describe "of wake-ups" do
    it "has arrows from the waker's slice to the woken fiber's" do
      waker = woken = nil
      trace = traced do
        queue = Queue.new
        woken = Heddle.spin(background: true) { queue.pop }
        Heddle.snooze
        waker = Heddle.spin(background: true) { queue.push(1) }
        Heddle.await_all(woken, waker)
      end

      expect(trace.arrows).to include([waker.object_id, woken.object_id])
    end

    it "has an arrow from the parent of a new fiber" do
      parent = child = nil
      trace = traced do
        parent = Fiber.current
        child = Fiber.schedule { nil }
      end

      expect(trace.arrows).to include([parent.object_id, child.object_id])
    end

    it "has arrows between schedulers" do
      waker = woken = nil
      queue = Queue.new
      Heddle.trace(path) do
        thread = scheduled_thread { woken = Fiber.schedule { queue.pop } }
        until_asleep(thread)
        Heddle.run { waker = Fiber.schedule { queue.push(1) } }
        thread.join
      end

      expect(TraceFile.read(path).arrows).to include([waker.object_id, woken.object_id])
    end

    it "has arrows that begin and end within slices" do
      trace = traced do
        queue = Queue.new
        fibers = [Heddle.spin { 50.times { queue.pop } }, Heddle.spin { 50.times { queue.push(1) && Heddle.snooze } }]
        Heddle.await_all(*fibers)
      end

      expect(trace.arrows.size).to be > 20
      expect(trace.arrows_outside_of_slices).to be_empty
    end

    it "tells what else has woken a fiber" do
      trace = traced do
        sleep a_moment
        IO.pipe { |reader, writer| Heddle.spin(background: true) { writer.write("x") } && reader.readpartial(1) }
        queue = Queue.new
        waiting = Thread.current
        Thread.new do
          until_asleep(waiting)
          queue.push(1)
        end
        queue.pop
      end

      expect(trace.waits.map { |wait| wait.dig("args", "woken_by") }).to include("timer", "I/O", "another thread")
    end
  end

  it "shows preemptions of preempt: :all" do
    computing = nil
    trace = traced(preempt: :all, tick: 0.0005) do
      computing = Heddle.spin(background: true) do
        preemptions = Fiber.scheduler.stats[:run_queue][:preemptions_count]
        nil until Fiber.scheduler.stats[:run_queue][:preemptions_count] > preemptions + 2
      end
      Heddle.spin(background: true) { sleep 0.0005 while computing.alive? }
      Heddle.await(computing)
    end
    preempted = trace.events("i").select { |event| event["name"] == "preempted" }

    expect(preempted.count { |event| event["tid"] == computing.object_id }).to be_positive
    expect(trace.overlaps).to be_empty
  end

  it "shows reads and writes with their descriptors and results" do
    fds = nil
    trace = traced do
      UNIXSocket.pair.then do |one, other|
        fds = [one, other].map(&:fileno)
        Heddle.spin(background: true) { one.write("hello") }
        other.readpartial(10)
        [one, other].each(&:close)
      end
    end

    expect(trace.io.select { |_, fd, result| fds.include?(fd) && result == 5 }.map(&:first))
      .to include(/\A(write|send)\z/).and include(/\A(read|receive)\z/)
  end

  # Perfetto shows events with a global `id` outside of all processes.
  it "numbers operations within their scheduler" do
    trace = traced do
      IO.pipe do |reader, writer|
        Heddle.after(0.001) { writer.write("x") }
        reader.wait_readable
      end
    end

    expect(trace.events("b")).not_to be_empty
    expect(trace.events("b")).to all(include("id2" => { "local" => /\A0x\h+\z/ }))
    expect(trace.events("b").flat_map(&:keys)).not_to include("id")
  end

  it "shows garbage collections, in the fiber in which they happened, too" do
    trace = traced { GC.start }
    tracks = trace.slices("gc").map { |slice| slice["pid"] }.uniq

    expect(tracks.size).to eq 2
    expect(trace.overlaps).to be_empty
  end

  it "shows stalls where the scheduler reports them" do
    output, errors, = run_ruby(<<~RUBY, path)
      require "heddle"
      reported = false
      Heddle.on_stall { |stall| reported = true if stall.fiber.to_s.include?("slow") }
      Heddle.run(stall_after: 0.01) do
        Heddle.trace(ARGV.first) do
          # Each of its time slices is reported once, which may be before it begins to compute.
          slow = Heddle.spin(name: "slow", background: true) { 10_000_000.times { break if reported } && sleep(0) until reported }
          puts slow.object_id
          Heddle.await(slow)
        end
      end
    RUBY
    stalls = TraceFile.read(path).events("i").select { |event| event["name"] == "stall" }

    expect([stalls.map { |stall| stall["tid"] }, errors]).to match [include(Integer(output)), ""]
    expect(stalls.first["args"]["seconds"]).to be > 0.01
  end

  it "shows polls, and how long the thread has waited in the kernel" do
    waiting = Thread.current
    trace = traced do
      IO.pipe do |reader, writer|
        writing = Thread.new { until_asleep(waiting) || writer.write("x") }
        reader.read(1)
        writing.join
      end
    end

    expect(trace.slices("poll").select { |slice| slice["name"] == "wait in the kernel" }.sum { |slice| slice["dur"] })
      .to be_positive
  end

  describe "with more events than events:" do
    it "drops the oldest, and says how many" do
      trace = traced(events: 100) { 300.times { Heddle.snooze } }
      about = trace.data["otherData"]

      expect(about).to include("events" => 100)
      expect(about["dropped"]).to be > 200
      names = trace.events("i").map { |event| event["name"] }
      expect(names).to include("#{about["dropped"]} earlier events were dropped")
      expect(trace.overlaps).to be_empty
    end

    it "still knows the names of fibers that have ended" do
      id = nil
      trace = traced(events: 30) do
        fiber = Heddle.spin(name: "ended", background: true) { 100.times { Heddle.snooze } }
        id = fiber.object_id
        Heddle.await(fiber)
      end

      expect(trace.name_of(id)).to eq "ended"
    end
  end
end
