# frozen_string_literal: true

require "json"

RSpec.describe "Heddle::Scheduler#stats" do
  def stats = Fiber.scheduler.stats

  # Returns what the block has added to a number.
  def added(*path)
    before = stats.dig(*path)
    yield
    stats.dig(*path) - before
  end

  # Calls the block with each value that is in no Hash.
  def each_number(numbers, &block)
    numbers.each_value { |value| value.is_a?(Hash) ? each_number(value, &block) : yield(value) }
  end

  it "is frozen, with all Hashes in it" do
    found = Heddle.run { stats }

    expect(found.values.grep(Hash) + found[:workers].values + [found, found[:fibers][:waiting_for]]).to all be_frozen
  end

  it "has the same keys on a scheduler that has run nothing as on one that runs" do
    names = ->(numbers) { numbers.to_h { |key, value| [key, value.is_a?(Hash) ? names[value] : nil] } }
    fresh = Heddle::Scheduler.new.stats
    running = Heddle.run { stats }
    [fresh, running].each { |numbers| numbers[:fibers].then { |fibers| expect(fibers[:waiting_for]).to be_a(Hash) } }

    expect(fresh.keys).to eq running.keys
    expect(names[fresh.except(:fibers)]).to eq names[running.except(:fibers)]
  end

  it "can be written as JSON" do
    text = Heddle.run(stats: :detailed) { JSON.generate(stats) }

    expect(JSON.parse(text)).to include("elapsed", "fibers", "run_queue")
  end

  describe "[:fibers]" do
    it "counts fibers that have been made and that have ended" do
      counts = Heddle.run do
        3.times { Fiber.schedule { nil } }
        Fiber.schedule { sleep }.then { |sleeping| [stats[:fibers], sleeping.kill] }.first
      end

      expect(counts).to include(spawned_count: 5, ended_count: 3)
    end

    it "tells what fibers wait for" do
      counts = Heddle.run do
        fibers = [Fiber.schedule { sleep }, Fiber.schedule { Queue.new.pop }, Fiber.schedule { sleep }]
        stats[:fibers].tap { fibers.each(&:kill) }
      end

      expect(counts[:waiting_for]).to include(sleep: 2, block: 1)
    end

    {
      io_wait: ->(reader) { reader.wait_readable },
      io_select: ->(reader) { IO.select([reader]) },
      io: ->(reader) { reader.read(1) }
    }.each do |kind, program|
      it "tells that a fiber waits for #{kind}" do
        counts = UNIXSocket.pair do |reader, _writer|
          Heddle.run do
            fiber = Fiber.schedule { program.call(reader) }
            stats[:fibers].tap { fiber.kill }
          end
        end

        expect(counts[:waiting_for]).to include(kind => 1)
      end
    end

    it "counts a fiber of Fiber.schedule that an error has ended, and none that was stopped" do
      counts = Heddle.run do
        captured_stderr { Fiber.schedule { raise "failed" } }
        Fiber.schedule { sleep }.kill
        told = Heddle.spin(background: true) { sleep }
        Heddle.stop(told)
        pass_until { !told.alive? }
        stats[:fibers]
      end

      expect(counts).to include(failed_count: 1, ended_count: 3)
    end

    it "counts a fiber of Heddle.spin that an error has ended once" do
      failed = Heddle.run do
        begin
          Heddle.await(Heddle.spin { raise IOError })
        rescue IOError
          nil
        end
        stats[:fibers][:failed_count]
      end

      expect(failed).to eq 1
    end
  end

  describe "[:run_queue]" do
    it "counts time slices" do
      switches = Heddle.run do
        Fiber.schedule { 100.times { sleep(0) } }
        added(:run_queue, :switches_count) { 100.times { sleep(0) } }
      end

      expect(switches).to be >= 200
    end

    it "tells how many fibers are queued" do
      depth = Heddle.run do
        fibers = []
        added(:run_queue, :depth) { fibers = Array.new(3) { Heddle.spin(background: true) { nil } } }
          .tap { Heddle.await_all(*fibers) }
      end

      expect(depth).to eq 3
    end

    it "counts preemptions" do
      counts = Heddle.run do
        preempt_a_fiber
        stats[:run_queue][:preemptions_count]
      end

      expect(counts).to be_positive
    end

    it "counts yields of a fiber whose writes never have to wait", if: ENV["HEDDLE_BACKEND"] == "poll" do
      yields = Heddle.run do
        UNIXSocket.pair do |writer, reader|
          added(:run_queue, :budget_forced_yield_count) do
            100.times { writer.write("x") && reader.readpartial(1) }
          end
        end
      end

      expect(yields).to be_positive
    end

    it "has no histograms unless the scheduler was made with stats: :detailed" do
      expect(Heddle.run { stats[:run_queue] }).to include(scheduled_duration: nil, slice_duration: nil)
    end

    it "has histograms of waits and slices with stats: :detailed" do
      queue = Heddle.run(stats: :detailed) do
        Fiber.schedule { 50.times { sleep(0) } }
        50.times { sleep(0) }
        stats[:run_queue]
      end

      expect(queue[:scheduled_duration].count).to be >= 100
      expect(queue[:slice_duration].count).to be >= 100
      expect(queue[:scheduled_duration].p50).to be_between(0, queue[:scheduled_duration].p99)
    end

    it "measures how long a woken fiber has waited for a fiber that computes" do
      longest = Heddle.run(stats: :detailed, preempt: :none) do
        woken = Queue.new
        Fiber.schedule { woken.pop }
        woken << true
        compute_for(0.05)
        sleep(0)
        stats[:run_queue].values_at(:scheduled_duration, :slice_duration).map(&:max)
      end

      expect(longest).to all be >= 0.05
    end

    it "does not take a wait in the kernel for a slice" do
      slices, busy = Heddle.run(stats: :detailed) do
        10.times { sleep 0.02 } # at least
        numbers = stats
        [numbers[:run_queue][:slice_duration].sum, numbers[:busy_duration]]
      end

      expect(slices).to be <= busy
    end

    it "times preempted fibers and woken ones together" do
      count = Heddle.run(stats: :detailed, preempt: :all) do
        fibers = Array.new(2) { Heddle.spin(background: true) { compute_for(0.03) } }
        Heddle.await_all(*fibers)
        stats[:run_queue][:slice_duration].count
      end

      expect(count).to be_positive
    end
  end

  describe "[:kernel]" do
    it "counts waits in the kernel and their time" do
      added = Heddle.run do
        before = stats[:kernel]
        sleep 0.001 until stats[:kernel][:park_duration] > before[:park_duration]
        stats[:kernel].to_h { |name, value| [name, value - before[name]] }
      end

      expect(added[:park_count]).to be >= 1
    end

    it "counts no more busy polls than waits" do
      kernel = Heddle.run do
        IO.pipe do |reader, writer|
          20.times { Thread.new { writer.write("x") }.tap { reader.readpartial(1) }.join }
        end
        stats[:kernel]
      end

      expect(kernel[:busy_poll_count]).to be_between(0, kernel[:park_count])
    end

    it "counts the wait that is under way, for a thread that asks meanwhile" do
      scheduler = Queue.new
      thread = scheduled_thread { |made| Fiber.schedule { scheduler.push(made) && sleep } }
      observed = scheduler.pop
      until_asleep(thread)
      Thread.pass until observed.stats[:kernel][:park_duration] > 0.01

      expect(observed.stats[:fibers][:waiting_for]).to include(sleep: 1)
    ensure
      thread.kill.join
    end

    it "leaves the time in which a scheduler sleeps out of its busy ratio" do
      found = Heddle.run do
        sleep(0.001) until stats[:kernel][:park_duration].positive?
        stats
      end

      expect(found[:busy_ratio]).to be_within(1e-6).of(found[:busy_duration] / found[:elapsed])
      expect(found[:busy_duration]).to be_within(1e-6).of(found[:elapsed] - found[:kernel][:park_duration])
    end
  end

  describe "[:operations]" do
    it "counts waits for readiness, and what has completed" do
      added = Heddle.run do
        IO.pipe do |reader, writer|
          before = stats[:operations]
          Fiber.schedule { writer.write("x") }
          waiting = Fiber.schedule { reader.wait_readable }
          pass_until { !waiting.alive? }
          stats[:operations].to_h { |name, value| [name, value - before[name]] }
        end
      end

      expect(added[:ready_count] + added[:tried_count]).to be_positive
    end

    it "counts batches and the size of the largest" do
      found = Heddle.run do
        pipes = Array.new(5) { IO.pipe }
        fibers = pipes.map { |reader, _| Heddle.spin(background: true) { reader.wait_readable } }
        sleep(0)
        pipes.each { |pair| pair.last.write_nonblock("x") }
        Heddle.await_all(*fibers)
        pipes.flatten.each(&:close)
        stats[:operations]
      end

      expect(found).to include(ready_count: 5, completed_count: 5, pending: 0)
      expect(found[:batches_count]).to be_between(1, 5)
      expect(found[:mean_batch_size] * found[:batches_count]).to be_within(0.001).of(5)
      expect(found[:max_batch_size]).to be_between(1, 5)
    end

    it "counts a name that a native thread looks up as a job" do
      jobs = Heddle.run { added(:operations, :job_count) { Addrinfo.getaddrinfo("localhost", 80) } }

      expect(jobs).to be_positive
    end
  end

  it "counts timers that are set and that have expired" do
    expired, pending = Heddle.run do
      sleeping = Fiber.schedule { sleep 60 }
      found = [added(:timers, :expired_count) { sleep a_moment }, stats[:timers][:pending]]
      sleeping.kill
      found
    end

    expect([expired, pending]).to eq [1, 1]
  end

  it "tells the limits and the queues of the pools of threads" do
    pools = Heddle.run(workers: 3) { Addrinfo.getaddrinfo("localhost", 80) && stats[:workers] }

    expect(pools[:files]).to eq(limit: 3, threads: 0, idle: 0, queue_depth: 0)
    expect(pools[:names]).to include(limit: 48, threads: 1, queue_depth: 0)
  end

  it "counts the garbage collections of the process" do
    collections = Heddle.run { added(:gc, :count) { GC.start } }

    expect(collections).to be_positive
  end

  it "keeps the counts of a scheduler that is closed, and its time stands still" do
    closed = Heddle.run { Fiber.scheduler.tap { Fiber.schedule { nil } } }

    expect(closed.stats[:fibers]).to include(spawned_count: 2, ended_count: 2, waiting: 0)
    expect(closed.stats[:workers][:files]).to include(threads: 0)
    expect(closed.stats[:elapsed]).to eq closed.stats[:elapsed]
  end

  it "starts at zero in a forked child" do
    found = Heddle.run do
      10.times { Heddle.snooze }
      GC.start
      in_child { Fiber.scheduler&.stats&.then { |numbers| [numbers[:fibers][:spawned_count], numbers[:elapsed]] } }
    end

    # Ruby 4 takes the scheduler from the child.
    expect(found).to eq([0, 0.0]).or be_nil
  end

  it "counts in a forked child that goes on with its scheduler" do
    found = Heddle.run do
      10.times { Heddle.snooze }
      in_child do
        Fiber.set_scheduler(Heddle::Scheduler.new) unless Fiber.scheduler
        Fiber.schedule { nil }
        Fiber.scheduler.stats.then { |numbers| [numbers[:fibers][:spawned_count], numbers[:elapsed].positive?] }
      end
    end

    expect(found).to eq [1, true]
  end

  it "has numbers and nothing else" do
    numbers = []
    each_number(Heddle.run { stats }) { |number| numbers << number }

    expect(numbers.compact).to all be_a(Numeric)
  end

  describe "a histogram" do
    def histogram(counts, max)
      Heddle::Metrics::Histogram.of(counts, 0.0, max)
    end

    it "tells percentiles as the ends of buckets, and never more than the longest duration" do
      found = histogram(([0] * 35) + [98, 0, 2, 0], 1.3e-6)

      expect([found.p50, found.p99, found.max]).to eq [1.024e-6, 1.3e-6, 1.3e-6]
    end

    it "without durations has percentiles of zero" do
      expect(histogram([0] * 157, 0.0).to_h).to eq(count: 0, sum: 0.0, max: 0.0, p50: 0.0, p99: 0.0, buckets: {})
    end

    [-0.1, 1.1, "p99", nil].each do |fraction|
      it "refuses the percentile #{fraction.inspect}, and names the range" do
        expect { histogram([1], 0.0).percentile(fraction) }
          .to raise_error(ArgumentError, "percentile: must be a number from 0 to 1, not #{fraction.inspect}")
      end
    end
  end

  { basic: NilClass, detailed: Heddle::Metrics::Histogram }.each do |level, kind|
    it "has histograms of class #{kind} with stats: #{level.inspect}" do
      expect(Heddle::Scheduler.new(stats: level).stats[:run_queue][:slice_duration]).to be_a(kind)
    end
  end

  [:all, "detailed", true, 1].each do |level|
    it "refuses stats: #{level.inspect}, and names the accepted values" do
      expect { Heddle::Scheduler.new(stats: level) }
        .to raise_error(ArgumentError, "stats: must be :basic or :detailed, not #{level.inspect}")
    end
  end
end
