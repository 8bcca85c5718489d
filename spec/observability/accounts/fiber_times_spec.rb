# frozen_string_literal: true

RSpec.describe "Heddle::FiberInfo#times" do
  include Computing

  def times_of(fiber) = Heddle.fibers.find { |info| info.fiber.equal?(fiber) }.times

  # Runs the block in a fiber that then waits. Returns what it has spent its time on by then.
  def spent(**options)
    Heddle.run(stats: :detailed, **options) do
      done = Queue.new
      fiber = Fiber.schedule do
        yield
        done << true
        sleep
      end
      done.pop
      times_of(fiber).tap { fiber.kill }
    end
  end

  it "is nil unless that is counted" do
    infos = Heddle.run { Heddle.fibers }

    expect(infos.map { |info| [info.times, info.named_times] }).to eq [[nil, nil]] * infos.size
  end

  it "tells how long a fiber that computes has run" do
    expect(spent { compute_for(0.02) }.ran).to be >= 0.02
  end

  it "tells how long a fiber that was woken has waited for its turn" do
    times = spent do
      Fiber.schedule { compute_for(0.02) }
      sleep 0
    end

    expect(times.runnable).to be >= 0.02
  end

  it "tells what a fiber has waited for" do
    reader, writer = IO.pipe
    queue = Queue.new
    times = spent do
      sleep a_moment
      Fiber.schedule { sleep(a_moment).then { queue << 1 } }
      queue.pop
      Fiber.schedule { sleep(a_moment).then { writer << "x" } }
      reader.readpartial(1)
    end

    expect(times.waited.keys).to include(:sleep, :block, :io)
    expect(times.waited.values_at(:sleep, :block, :io)).to all be_positive
    expect(times.waited.values).to eq times.waited.values.sort.reverse
  end

  it "accounts for all of the time" do
    times = spent(preempt: :all) { 3.times { sleep(a_moment).then { compute_for(0.003) } } }

    expect(times.ran + times.runnable + times.waited.sum(&:last)).to be_within(1e-6).of(times.seconds)
  end

  it "counts what an Enumerator of the fiber does as its own" do
    times = spent do
      numbers = Enumerator.new do |yielder|
        sleep a_moment
        compute_for 0.01
        yielder << 1
      end
      numbers.next
    end

    expect(times.ran).to be >= 0.01
    expect(times.waited).to include(sleep: be_positive)
    expect(times.waited).not_to include(:resume)
  end

  it "counts preemptions" do
    times = Heddle.run(stats: :detailed) do
      done = false
      fiber = YieldingFiber.schedule { nil until done }
      times_of(fiber).tap { done = true }
    end

    expect(times.preemptions).to be >= 1
  end

  it "is frozen" do
    times = spent { sleep a_moment }

    expect([times, times.waited]).to all be_frozen
  end

  it "tells all of it in a line" do
    waited = { io: 2.7, sleep: 0.0996, process: 0.00049 }
    times = Heddle::FiberTimes.new(seconds: 61.04, ran: 58.2, runnable: 0.04, waited:, preemptions: 2)

    expect(times.to_s).to eq(
      "ran 58.2 s of its 61.0 s, waited 40.0 ms for its turn, waited 2.8 s (io 2.7 s, sleep 99.6 ms), preempted 2 times"
    )
  end

  it "leaves out of the line what is shorter than a millisecond" do
    times = Heddle::FiberTimes.new(seconds: 0.05, ran: 0.05, runnable: 0.0001, waited: { io: 0.0001 }, preemptions: 1)

    expect(times.to_s).to eq("ran 50.0 ms of its 50.0 ms, preempted once")
  end

  it "begins anew in a forked child" do
    reader, writer = IO.pipe
    Heddle.run(stats: :detailed) do
      compute_for(0.01)
      forked = Clock.now
      pid = fork do
        sleep a_moment
        # Ruby 4.0 does not use the scheduler in the child.
        seconds = times_of(Fiber.current)&.seconds || 0
        writer << [seconds, Clock.now - forked].join(" ") << "\n"
        exit!(true)
      end
      Process.wait(pid)
    end

    counted, most = reader.gets.split.map { |seconds| Float(seconds) }
    expect(counted).to be <= most
  end

  it "is nil in a forked child that has not used the scheduler" do
    reader, writer = IO.pipe
    Heddle.run(stats: :detailed) do
      pid = fork do
        writer.write_nonblock(times_of(Fiber.current).inspect)
        exit!(true)
      end
      Process.wait(pid)
    end
    writer.close

    expect(reader.read).to eq "nil"
  end

  it "still counts in a scheduler that was closed and is used again" do
    scheduler = Heddle::Scheduler.new(stats: :detailed)
    ran = Array.new(2) do
      Thread.new do
        Fiber.set_scheduler(scheduler)
        fiber = Fiber.schedule { compute_for(0.01).then { sleep } }
        times_of(fiber).ran.tap { fiber.kill }
      end.value
    end

    expect(ran).to all be >= 0.01
  end

  describe "Heddle::FiberInfo#named_times" do
    def named_times = Heddle.fibers.find { |info| info.fiber.equal?(Fiber.current) }.named_times

    it "begins when the fiber gets its name" do
      named, most = Heddle.run(stats: :detailed) do
        compute_for(0.01)
        began = Clock.now
        Heddle.annotate("part") { [named_times, Clock.now - began] }
      end

      expect(named.seconds).to be <= most
      expect(named.ran).to be <= named.seconds
    end

    it "is nil for a fiber without a name" do
      expect(Heddle.run(stats: :detailed) { named_times }).to be_nil
    end
  end

  describe "Heddle.dump" do
    it "tells it for each fiber" do
      text = StringIO.new
      Heddle.run(stats: :detailed) do
        fiber = Heddle.spin(name: "busy", background: true) { compute_for(0.11).then { sleep } }
        sleep 0
        Heddle.dump(text)
        fiber.kill
      end

      expect(text.string).to match(/ "busy" \(waiting, .*\n +ran \d+\.\d s of its \d+\.\d s/)
    end
  end
end
