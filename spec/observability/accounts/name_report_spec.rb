# frozen_string_literal: true

RSpec.describe "Heddle::NameReport" do
  include CapturedStderr
  include Computing
  include Processes
  include Swallowing

  let(:reports) { Heddle.const_get(:NameReport).new }

  def report(**) = reports.take(**)

  def row(name) = report[:names].find { |row| row[:name] == name }

  it "has no names while nothing is counted" do
    found = Heddle.run { Heddle.annotate("a") { report } }

    expect(found).to include(names: [], history: [], late: [], seconds: 0.0)
  end

  it "adds up what all fibers of a name do" do
    found = Heddle.run(stats: :detailed) do
      3.times { |id| Heddle.spin(name: "GET /orders/#{id}", background: true) { compute_for(0.01) } }
      running = Heddle.spin(name: "GET /orders/9", background: true) { sleep }
      until_others_wait
      row("GET /orders/:id").tap { running.kill }
    end

    expect(found).to include(kind: :request, running: 1, finished: 3, ran: be >= 0.03)
    expect(found[:max]).to be >= found[:p50]
  end

  it "has the age of a fiber that still runs" do
    found = Heddle.run(stats: :detailed) { Heddle.annotate("Report") { compute_for(0.05).then { row("Report") } } }

    expect(found).to include(kind: :job, running: 1, finished: 0, max: be >= 0.05, p99: be >= 0.04)
  end

  it "has what hurts most first, and the kinds of names" do
    found = Heddle.run(stats: :detailed) do
      Heddle.annotate("heddle: inner") { compute_for(0.01) }
      Heddle.annotate("my part") { compute_for(0.05) }
      report[:names]
    end

    times = found.map { |row| row[:ran] + row[:runnable] + row[:waited].sum(&:last) }
    expect(times).to eq times.sort.reverse
    expect(found.to_h { |row| row.values_at(:name, :kind) }).to include(
      "heddle: inner" => :heddle, "my part" => :other, nil => :unnamed
    )
  end

  it "tells at most 100 names apart" do
    found = Heddle.run(stats: :detailed) do
      300.times { |index| Heddle.annotate("name#{index}x") { nil } }
      report[:names]
    end

    expect(found.size).to be <= 102
    expect(found.find { |row| row[:name] == "other" }).to include(finished: 200)
  end

  it "takes names of any encoding, with invalid bytes, and of any length" do
    names = ["\xff\x00".b, "ab".encode("UTF-16LE"), "a" * 100_000, "", "\e[1m"]
    found = Heddle.run(stats: :detailed) do
      names.each { |name| Heddle.annotate(name) { nil } }
      report[:names].filter_map { |row| row[:name] }
    end

    expect(found.size).to eq names.size
    expect(found).to all be_valid_encoding
    expect(found.map(&:bytesize).max).to be <= 120
  end

  it "forgets the fibers of a scheduler that closes, but not what they did" do
    scheduler = Heddle::Scheduler.new(stats: :detailed)
    Thread.new do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { Heddle.annotate("done") { compute_for(0.01) } }
    end.join

    _, _, totals = Heddle.const_get(:Native).name_totals(scheduler)
    expect(totals.assoc("done").last(2).map { |counts,| counts.sum }).to eq [1, 0]
  end

  it "does not count a fiber that was abandoned as running" do
    found = nil
    report_of_it = captured_stderr do
      Heddle.run(stats: :detailed, grace: 0.001) do
        fiber = Heddle.spin(name: "stubborn", background: true) { swallow { sleep } }
        sleep 0
        Heddle.stop(fiber)
        sleep 0.001 until (found = row("stubborn"))[:running].zero?
      end
    end

    expect(report_of_it).to include("stubborn")
    expect(found).to include(running: 0)
  end

  # The block starts a fiber that waits for the Queue, and is woken before another one computes.
  def late_ones
    Heddle.run(stats: :detailed) do
      queue = Queue.new
      woken = yield queue
      until_others_wait
      queue << :wake
      Heddle.annotate("computing") { compute_for(0.05) }
      Heddle.await(woken)
      report[:late]
    end
  end

  it "tells which fiber was late, and which one ran meanwhile" do
    late = late_ones { |queue| Heddle.spin(name: "clock", background: true) { queue.pop } }

    expect(late).to include(include(name: "clock", waited: be >= 0.05,
                                    ran_meanwhile: include(include(name: "computing"))))
  end

  # The fiber of a connection reads a request before it knows which one it is.
  it "tells of a late fiber by the name that it takes before others run" do
    late = late_ones { |queue| Heddle.spin(background: true) { queue.pop && Heddle.annotate("GET /slow") { nil } } }

    expect(late).to include(include(name: "GET /slow", waited: be >= 0.05))
  end

  it "has all that was counted when it is taken for the first time, and what was done since then later" do
    first, second = Heddle.run(stats: :detailed) do
      Heddle.annotate("before") { compute_for(0.02) }
      first = report
      Heddle.annotate("after") { nil }
      [first, report]
    end

    expect(first).to include(seconds: be >= 0.02, names: include(include(name: "before", finished: 1)))
    expect(second[:names].filter_map { |row| row[:name] }).to eq ["after"]
  end

  it "has the spans since it was taken for the first time" do
    found = Heddle.run(stats: :detailed) do
      Heddle.annotate("part") do
        report
        compute_for(0.01)
        report[:history]
      end
    end

    expect(found.sum { |span| span[:names].sum { |row| row[:name] == "part" ? row[:ran] : 0 } }).to be >= 0.01
    expect(found.last[:at]).to be_within(600).of(Time.now.to_f)
  end

  describe "after some minutes" do
    let(:context) { Heddle.const_get(:Context) }

    # How often a fiber had a name, by the report of the last of these times. Before each report one has it once.
    def finished_at(*seconds, **)
      native = Heddle.const_get(:Native)
      allow(native).to(receive(:name_totals).and_wrap_original { |read, *of| read.call(*of)&.fill(1e6, 0, 1) })
      Heddle.run(stats: :detailed) { seconds.map { |time| finished_by(time, **) } }.last
    end

    def finished_by(time, **)
      Heddle.annotate("part") { nil }
      allow(context).to receive(:now).and_return(1000.0 + time)
      report(**)[:names].sum { |row| row[:name] == "part" ? row[:finished] : 0 }
    ensure
      allow(context).to receive(:now).and_call_original
    end

    it "has what was done since the last one that is as old as the window" do
      expect(finished_at(0, 30, 60, 90, 120, window: 60)).to eq 2
    end

    it "has what was done since the first one, if none is as old" do
      expect(finished_at(0, 30, 60, 90, 120, window: 300)).to eq 4
    end

    it "has all, if all others are older than five minutes" do
      expect(finished_at(0, 400, window: 10)).to eq 2
    end
  end

  it "refuses a window that is no number of seconds" do
    expect { report(window: -1) }.to raise_error(ArgumentError, /must be finite and not negative, not -1/)
    expect { report(window: "1") }.to raise_error(TypeError, /must be an Integer, a Float or a Rational, not "1"/)
  end

  describe "Heddle::Accounting.run_for" do
    def run_for(seconds) = Heddle.const_get(:Accounting).run_for(seconds)

    it "counts for a while, from any thread, with the names that the fibers have" do
      found = Heddle.run do
        Heddle.spin(name: "old", background: true) { sleep }.then do |fiber|
          sleep 0
          Thread.new { run_for(60) }.join
          compute_for(0.01)
          [row("old"), Heddle.fibers.find { |info| info.name == "old" }.times].tap { fiber.kill }
        end
      end

      expect(found.first).to include(running: 1)
      expect(found.last.waited).to include(sleep: be >= 0.01)
    end

    it "ends by itself" do
      left = Heddle.run do
        run_for(0)
        sleep a_moment
        Heddle.fibers.first.times
      end

      expect(left).to be_nil
    end

    it "ends with the scheduler, and leaves nothing behind" do
      scheduler = Heddle::Scheduler.new
      Thread.new do
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { run_for(60) }
      end.join

      expect(Heddle.const_get(:Native).name_totals(scheduler)).to be_nil
      expect(scheduler.stats[:run_queue][:slice_duration]).to be_nil
    end

    it "counts no longer than is needed for the scheduler that is detailed anyway" do
      kept = Heddle.run(stats: :detailed) do
        run_for(0)
        sleep a_moment
        Heddle.fibers.first.times
      end

      expect(kept).to be_a(Heddle::FiberTimes)
    end
  end

  # Ruby behaves differently from the first Ractor until the process ends.
  it "is not in the way of names in other Ractors" do
    output = printed(<<~RUBY, preamble: "require \"heddle\"\n")
      Warning[:experimental] = false
      Heddle.run(stats: :detailed) do
        ractor = Ractor.new { Heddle.annotate("elsewhere") { 1 } }
        print Thread.new { ractor.respond_to?(:value) ? ractor.value : ractor.take }.value
      end
    RUBY

    expect(output).to eq "1"
  end
end
