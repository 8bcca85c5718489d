# frozen_string_literal: true

require "json"
require "pathname"
require "stringio"
require "zlib"

RSpec.describe "Heddle.trace" do
  include Tracing

  it "returns the block's value" do
    expect(Heddle.trace(path) { 42 }).to eq 42
  end

  it "writes a trace without any scheduler" do
    Heddle.trace(path) { nil }

    expect(TraceFile.read(path).data["otherData"]).to include("dropped" => 0, "version" => Heddle::VERSION)
  end

  describe "the target" do
    it "is compressed if its name ends in .gz" do
      Heddle.trace(path("trace.json.gz")) { nil }

      expect(JSON.parse(Zlib.gunzip(File.binread(path("trace.json.gz"))))).to include("traceEvents")
    end

    it "can be a Pathname" do
      Heddle.trace(Pathname.new(path)) { nil }

      expect(TraceFile.read(path).data).to include("traceEvents")
    end

    it "can be an IO, which stays open" do
      io = StringIO.new
      Heddle.trace(io) { nil }

      expect([JSON.parse(io.string).keys, io.closed?]).to match [include("traceEvents"), false]
    end

    it "raises at once if it cannot be opened, and leaves nothing behind" do
      expect { Heddle.trace(path("missing/trace.json")) { raise "runs" } }.to raise_error(Errno::ENOENT)
      expect(recording?).to be false
      expect(Heddle.trace(path) { 1 }).to eq 1
    end

    it "raises if the disk is full, and a further trace can begin", if: File.exist?("/dev/full") do
      expect { Heddle.trace("/dev/full") { nil } }.to raise_error(Errno::ENOSPC)
      expect(Heddle.trace(path) { 1 }).to eq 1
    end

    it "raises if it is closed meanwhile" do
      io = StringIO.new
      expect { Heddle.trace(io) { io.close } }.to raise_error(IOError)
      expect(recording?).to be false
    end

    [42, nil, :symbol].each do |target|
      it "is refused if it is #{target.inspect}" do
        expect { Heddle.trace(target) { nil } }
          .to raise_error(TypeError, /Heddle\.trace: #{Regexp.escape(target.inspect)} is neither a path nor/)
        expect(recording?).to be false
      end
    end
  end

  describe "with seconds:" do
    it "waits so long without a block, and returns a summary" do
      summary = Heddle.run { Heddle.trace(path, seconds: 0.01) }

      expect(summary).to have_attributes(path:, dropped: 0, seconds: be >= 0.01, events: be_positive)
      expect(summary).to be_frozen
    end

    it "lets other fibers run meanwhile" do
      order = []
      Heddle.run do
        Fiber.schedule { order << sleep(0) }
        Heddle.trace(path, seconds: 0.01)
        order << :traced
      end

      expect(order.last).to eq :traced
    end

    it "writes the file although the block goes on, and returns the block's value" do
      value = Heddle.run do
        Heddle.trace(path, seconds: 0.01) do
          sleep 0.001 while recording?
          sleep 0.001 until File.read(path).end_with?("]}\n")
          TraceFile.read(path).data["otherData"]["seconds"]
        end
      end

      expect(value).to be >= 0.01
    end

    it "ends with a block that takes less" do
      Heddle.trace(path, seconds: 60) { nil }

      expect(TraceFile.read(path).data["otherData"]["seconds"]).to be < 30
    end

    { -1 => ArgumentError, Float::NAN => ArgumentError, Float::INFINITY => ArgumentError, "1" => TypeError }
      .each do |seconds, error|
      it "refuses #{seconds.inspect}" do
        expect { Heddle.trace(path, seconds:) { nil } }.to raise_error(error, /Heddle\.trace: seconds must be/)
      end
    end
  end

  it "needs a block or seconds:" do
    expect { Heddle.trace(path) }.to raise_error(ArgumentError, "Heddle.trace needs a block, or seconds:")
  end

  it "refuses unknown options" do
    expect { Heddle.trace(path, second: 1) { nil } }.to raise_error(ArgumentError, /unknown keyword: :second/)
  end

  { 0 => ArgumentError, -5 => ArgumentError, 1.5 => TypeError, nil => TypeError, (10**9) => ArgumentError }
    .each do |events, error|
    it "refuses events: #{events.inspect}" do
      expect { Heddle.trace(path, events:) { nil } }.to raise_error(error, /Heddle\.trace: /)
    end
  end

  it "is refused within a trace, with the way out" do
    Heddle.trace(path) do
      expect { Heddle.trace(path("other")) { nil } }
        .to raise_error(Heddle::Error, /recorded already, .* it ends with its seconds: or its block/)
    end
    expect(File.exist?(path("other"))).to be false
  end

  it "writes the trace if the block raises, and raises the block's error" do
    expect { Heddle.run { Heddle.trace(path) { raise KeyError, "from the block" } } }.to raise_error(KeyError)
    expect(TraceFile.read(path).slices).not_to be_empty
  end

  it "writes the trace if the block is left by throw" do
    expect(catch(:out) { Heddle.trace(path) { throw :out, 1 } }).to eq 1
    expect(recording?).to be false
    expect(TraceFile.read(path).data).to include("traceEvents")
  end

  it "writes the trace if its thread is killed" do
    inside = Queue.new
    thread = Thread.new { Heddle.trace(path) { inside.push(1) && sleep } }
    inside.pop
    thread.kill.join

    expect(recording?).to be false
    expect(TraceFile.read(path).data).to include("traceEvents")
  end

  it "writes the trace if its fiber is stopped" do
    Heddle.run do
      fiber = Heddle.spin(background: true) { Heddle.trace(path) { sleep } }
      Heddle.snooze
      Heddle.stop(fiber)
      pass_until { !fiber.alive? }
      sleep 0.001 until File.read(path).end_with?("]}\n")
    end

    expect(TraceFile.read(path).slices).not_to be_empty
  end

  describe "in a forked child" do
    it "is not recorded, and the child writes nothing" do
      told = nil
      trace = traced do
        sleep a_moment
        told = in_child do
          Heddle.spin(name: "child", background: true) { nil } if Fiber.scheduler
          [recording?, File.size(path)]
        end
      end

      expect(told).to eq [false, 0]
      expect(trace.names("thread")).not_to include("child")
    end

    it "ends without an error when the child leaves the block" do
      status = nil
      trace = traced { status = Process.wait2(fork { nil }).last }

      expect(status).to be_success
      expect(trace.slices).not_to be_empty
    end

    it "returns the block's value where the child goes on after the block" do
      pid = Process.pid
      inside = nil
      value = Heddle.trace(path) do
        in_child { [Process.pid == pid, Heddle.trace(path("child")) { 7 }] }.tap { inside = 1 }
      end

      expect([value, inside]).to eq [[false, 7], 1]
      expect(TraceFile.read(path("child")).data).to include("traceEvents")
    end
  end

  it "survives a scheduler that is closed, and others that open and close on other threads" do
    Heddle.trace(path) do
      threads = Array.new(4) do
        Thread.new { 5.times { Heddle.run { 3.times { Fiber.schedule { sleep a_moment } } } } }
      end
      threads.each(&:join)
      Heddle.run { Heddle.annotate("after the others") { sleep a_moment } }
    end
    trace = TraceFile.read(path)
    last = trace.slices.find { |slice| slice["name"] == "after the others" }
    others = trace.slices.reject { |slice| slice["pid"] == last["pid"] }

    expect(trace.names("process").grep(/scheduler/).size).to eq 21
    expect(others.map { |slice| TraceFile.range(slice).end }).to all be < last["ts"]
    expect(trace.overlaps).to be_empty
  end

  it "has 30,000 fibers", timeout: 120 do
    output, errors, = run_ruby(<<~RUBY, path, timeout: 100)
      require "heddle"
      # So many fibers are near the kernel's limit, of which Heddle warns.
      Heddle.const_get(:FiberBody).assume_map_limit(1 << 30)
      Heddle.run do
        queue = Queue.new
        fibers = Array.new(30_000) { Heddle.spin(background: true) { queue.pop } }
        Heddle.snooze
        Heddle.trace(ARGV.first) do
          fibers.each { queue << 1 }
          Heddle.await_all(*fibers)
        end
      end
    RUBY

    expect([output, errors]).to eq ["", ""]
    trace = TraceFile.read(path)
    expect(trace.data["otherData"]).to include("dropped" => 0, "events" => be > 120_000)
    expect(trace.names("thread").size).to be > 30_000
  end

  it "can be taken by a trap handler" do
    output, errors, = run_ruby(<<~RUBY, path)
      require "heddle"
      require "json"
      trap("USR1") { Heddle.trace(ARGV.first) { puts "traced" } }
      Process.kill("USR1", Process.pid)
      sleep 0.001 until File.exist?(ARGV.first) && File.read(ARGV.first).end_with?("]}\n")
    RUBY

    expect([output, errors]).to eq ["traced\n", ""]
    expect(TraceFile.read(path).data).to include("traceEvents")
  end

  it "records what other threads do" do
    Heddle.run do
      joining = Thread.current
      Thread.new { Heddle.trace(path) { until_asleep(joining) } }.join
    end

    expect(TraceFile.read(path).waits.map { |wait| wait["name"] }).to include("Thread")
  end

  it "can be taken again and again while a scheduler runs" do
    counts = Heddle.run { Array.new(3) { Heddle.trace(path, seconds: 0.001).events } }

    expect(counts).to all be_positive
  end

  it "leaves nothing that keeps switches slow when it has ended" do
    stats = Heddle.run do
      Heddle.trace(path) { Heddle.snooze }
      Fiber.scheduler.stats
    end

    expect(stats[:run_queue][:slice_duration]).to be_nil
  end
end
