# frozen_string_literal: true

require "heddle/testing"
require "timeout"

RSpec.describe "A virtual clock" do
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # The value of the block, and how many virtual milliseconds it takes.
  def elapsed
    virtually do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      value = yield
      [value, (Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began) / 1e6]
    end
  end

  {
    "sleep" => [-> { sleep(3600) }, 3600, 3_600_000],
    "Kernel.sleep" => [-> { Kernel.sleep(0.25) }, 0, 250],
    "Timeout.timeout" => [-> { Timeout.timeout(10) { sleep } rescue $!.class }, Timeout::Error, 10_000], # rubocop:disable Style/RescueModifier,Style/SpecialGlobalVars -- one line of a table
    "Queue#pop" => [-> { Queue.new.pop(timeout: 5) }, nil, 5_000],
    "SizedQueue#pop" => [-> { SizedQueue.new(1).pop(timeout: 5) }, nil, 5_000],
    "SizedQueue#push" => [-> { SizedQueue.new(1).tap { |queue| queue << 1 }.push(2, timeout: 5) }, nil, 5_000],
    "Mutex#sleep" => [-> { Mutex.new.tap(&:lock).sleep(3) }, nil, 3_000],
    "IO.select" => [-> { IO.pipe.then { |reader, _writer| IO.select([reader], nil, nil, 4) } }, nil, 4_000],
    "IO#wait_readable" => [-> { IO.pipe.then { |reader, _writer| reader.wait_readable(6) } }, nil, 6_000],
    "Heddle.move_on_after" => [-> { Heddle.move_on_after(9, value: 1) { sleep } }, 1, 9_000]
  }.each do |wait, (program, value, milliseconds)|
    it "ends #{wait} at its time" do
      expect(elapsed(&program)).to eq([value, milliseconds])
    end
  end

  # What is left of a time in Floats may be less than the clock's unit. A loop that sleeps until the time has to end.
  [1e-10, 1e-300, Rational(1, 10**12)].each do |time|
    it "moves in a sleep of #{time} s" do
      expect(elapsed { sleep(time) }).to eq([0, 1e-6])
    end

    it "moves in a Queue#pop that waits for #{time} s" do
      expect(elapsed { Queue.new.pop(timeout: time) }).to eq([nil, 1e-6])
    end
  end

  it "does not move in a sleep of no time" do
    expect(elapsed { sleep(-0.0) }).to eq([0, 0])
  end

  it "ends IO#timeout at its time" do
    program = lambda do
      reader, _writer = IO.pipe
      reader.timeout = 6
      reader.gets
    rescue IO::TimeoutError
      :late
    end

    expect(elapsed(&program)).to eq([:late, 6_000])
  end

  it "ends ConditionVariable#wait at its time" do
    program = lambda do
      lock = Mutex.new
      lock.synchronize { ConditionVariable.new.wait(lock, 7) }
      :waited
    end

    expect(elapsed(&program)).to eq([:waited, 7_000])
  end

  it "ends Thread#join(limit) at its time" do
    program = lambda do
      thread = Thread.new { Thread.stop }
      thread.join(3)
    ensure
      thread.kill
    end

    expect(elapsed(&program)).to eq([nil, 3_000])
  end

  it "calls Heddle.every at its times" do
    program = lambda do
      count = 0
      Heddle.move_on_after(9.5) { Heddle.every(1) { count += 1 } }
      count
    end

    expect(elapsed(&program)).to eq([9, 9_500])
  end

  it "raises again after pauses what a block with a limit swallows" do
    program = lambda do
      # The virtual time is far from the real one.
      sleep(86_400)
      times = []
      Heddle.move_on_after(1) do
        3.times do
          sleep
        rescue Exception # rubocop:disable Lint/RescueException -- what careless programs do
          times << Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
        end
      end
      times.each_cons(2).map { |one, other| other - one }
    end

    expect(virtually(&program)).to eq([1, 2])
  end

  it "ends the grace period by virtual time, from the moment when the termination was raised" do
    events = []
    virtually(grace: 5) do
      fiber = Heddle.spin(background: true) do
        Heddle.shield { sleep(9) }
        sleep
      ensure
        sleep(3) && (events << :ensured)
      end
      Heddle.snooze
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end

    expect(events).to eq([:ensured])
  end

  it "ends a fiber that survives its kill in a loop" do
    report = captured_stderr do
      virtually(grace: 5) do
        fiber = Heddle.spin(background: true) do
          loop do
            sleep
          ensure
            next
          end
        end
        Heddle.snooze
        Heddle.stop(fiber)
        Heddle.await(fiber)
      end
    end

    expect(report.lines.size).to eq(1)
  end

  it "ends sleeps in the order of their times" do
    order = []
    virtually { Heddle.await_all(*[3, 1, 2].map { |time| Heddle.spin { sleep(time) && (order << time) } }) }

    expect(order).to eq([1, 2, 3])
  end

  it "stands still while a fiber computes" do
    time = virtually { Array.new(2) { now.tap { 1_000.times { nil } } }.reduce(:-) }

    expect(time).to eq(0)
  end

  it "lets a value of another fiber come before a later limit" do
    program = lambda do
      queue = Queue.new
      Heddle.spin(background: true) { sleep(1) && (queue << :value) }
      queue.pop(timeout: 5)
    end

    expect(elapsed(&program)).to eq([:value, 1_000])
  end

  it "polls pipes before it jumps" do
    program = lambda do
      reader, writer = IO.pipe
      Heddle.spin(background: true) { writer.write("text") && writer.close }
      Heddle.move_on_after(1000, value: "late") { reader.read }
    end

    expect(elapsed(&program)).to eq(["text", 0])
  end

  it "waits for a thread that the block has started" do
    program = lambda do
      gate = Queue.new
      thread = Thread.new { gate.pop && :done }
      gate << true
      thread.value
    end

    # The clock must not move while the machine keeps the thread from running.
    expect(virtually(idle: 600) { Heddle.move_on_after(1000, value: :late, &program) }).to eq(:done)
  end

  it "waits for a thread that computes, whatever idle: is" do
    value = virtually(idle: 0) do
      queue = Queue.new
      Thread.new { queue << (1..1_000_000).sum { |number| number % 3 } }
      queue.pop(timeout: 3600)
    end

    expect(value).to eq(1_000_000)
  end

  it "does not wait without end for a thread that was there before and computes" do
    ended = false
    thread = Thread.new { nil until ended }
    expect(virtually(idle: 0.001) { sleep(1) && :slept }).to eq(:slept)
  ensure
    ended = true
    thread.join
  end

  it "names a jump over a wait for I/O in the detailed message of an assertion, too" do
    assertion = Class.new(Exception) # rubocop:disable Lint/InheritException -- as those of test frameworks
    expect(jumped_over(assertion).detailed_message).to include("The virtual clock has jumped once by 60.0 s")
  end

  # What the block raises in a run whose clock jumps over a wait for I/O.
  def jumped_over(wanted = nil)
    virtually(idle: 0.001) do
      reader, writer = IO.pipe
      reader.timeout = 60
      reader.read
    rescue IO::TimeoutError => e
      raise wanted || e
    ensure
      [reader, writer].each(&:close)
    end
  rescue wanted || IO::TimeoutError => e
    e
  end

  it "names a jump over a wait for I/O in the detailed message of the error" do
    expect(jumped_over.detailed_message)
      .to include("jumped once by 60.0 s while a fiber waited for I/O or a thread: no event had come for 0.016 s")
  end

  it "keeps the error's message as it is" do
    expect(jumped_over.message).to eq("Blocking operation timed out!")
  end

  # The handler of a signal runs meanwhile, and the thread writes only after that.
  def after_a_signal(&wait)
    handled = false
    outer = trap("USR1") { handled = true }
    virtually(idle: 600) do
      reader, writer = IO.pipe
      program = Thread.current
      thread = Thread.new do
        until_asleep(program)
        Process.kill("USR1", Process.pid)
        Thread.pass until handled
        writer << "text"
      end
      wait.call(reader).tap { thread.join }
    end
  ensure
    trap("USR1", outer)
  end

  it "does not move because a signal ends the wait in the kernel" do
    expect(after_a_signal { |reader| Heddle.move_on_after(1000, value: :late) { reader.readpartial(4) } }).to eq("text")
  end

  it "ends a sleep although a signal's handler waits while the scheduler looks for threads that may wake a fiber" do
    handled = false
    outer = trap("USR1") { sleep(5) && (handled = true) }
    virtually do
      thread = Thread.new { Thread.stop }
      until_asleep(thread)
      signals = ["USR1"]
      # The scheduler calls it to learn whether the thread may wake a fiber.
      thread.define_singleton_method(:inspect) { super().tap { signals.pop&.then { Process.kill(_1, Process.pid) } } }
      sleep(1) until handled
    ensure
      thread.kill
    end

    expect(handled).to be(true)
  ensure
    trap("USR1", outer)
  end

  it "moves by more than 584 years" do
    expect(elapsed { 7.times { sleep(99 * 365 * 86_400) } }).to eq([7, 693 * 365 * 86_400_000])
  end

  it "is the clock of the times in Heddle.fibers" do
    times = virtually do
      sleep(3600)
      fiber = Heddle.spin(background: true) { sleep }
      seconds = -> { Heddle.fibers.find { |info| info.fiber.equal?(fiber) }.seconds }
      Heddle.snooze
      [seconds.call, sleep(60), seconds.call].tap { Heddle.stop(fiber) }
    end

    expect(times).to eq([0, 60, 60])
  end

  it "moves Time.now" do
    expect(virtually { Time.now.then { |began| sleep(60) && (Time.now - began) } }).to eq(60)
  end

  {
    "Time.now(in:)" => -> { Time.now(in: "+09:00") },
    "Time.new" => -> { Time.new }, # rubocop:disable Style/TimeNow -- this is what is tested
    "Time.new(in:)" => -> { Time.new(in: "+09:00") },
    "a subclass's new" => -> { Class.new(Time).new }
  }.each do |name, time|
    it "moves #{name}" do
      expect(virtually { time.call.then { |began| sleep(60) && (time.call - began) } }).to eq(60)
    end
  end

  it "keeps the zone of Time.new(in:)" do
    expect(virtually { Time.new(in: "+09:00").utc_offset }).to eq(9 * 3600)
  end

  it "leaves Time.new with a date as it is" do
    expect(virtually { Time.new(2026, 2, 3, in: "UTC") }).to eq(Time.utc(2026, 2, 3))
  end

  it "calls initialize of a subclass of Time" do
    type = Class.new(Time) { def initialize = super(2000) }

    expect(virtually { type.new.year }).to eq(2000)
  end

  it "tells Process.clock_gettime in its unit" do
    expect(virtually { Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) }).to be_an(Integer)
  end

  it "tells Process.clock_gettime without a unit in seconds" do
    program = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, nil) - Process.clock_gettime(Process::CLOCK_MONOTONIC) }

    expect(virtually { sleep(86_400) && program.call }).to eq(0)
  end

  {
    "Queue#pop" => -> { Queue.new.pop(timeout: "soon") },
    "SizedQueue#push" => -> { SizedQueue.new(1).push(1, timeout: "soon") },
    "Thread#join" => -> { Thread.new { nil }.join("soon") }
  }.each do |wait, program|
    it "leaves Ruby's error for a limit of #{wait} that is no number" do
      expect { virtually(&program) }.to raise_error(TypeError)
    end
  end

  it "is not seen in Heddle::Testing.real_time" do
    difference = virtually { sleep(86_400) && Heddle::Testing.real_time { Process.clock_gettime(Process::CLOCK_REALTIME) } }

    expect(difference).to be <= Process.clock_gettime(Process::CLOCK_REALTIME)
  end

  it "is not seen after the run" do
    before = Time.now
    virtually { sleep(86_400) }

    expect(Time.now - before).to be < 86_400
  end

  it "is not seen by other threads" do
    seen = virtually { sleep(86_400) && [Thread.new { Process.clock_gettime(Process::CLOCK_REALTIME) }.value, Time.now.to_f] }

    expect(seen.first).to be < seen.last
  end

  it "raises an error that names the fibers when nothing can ever come" do
    program = -> { virtually { Heddle.spin(name: "waiting") { Queue.new.pop }.await } }

    expect(&program).to raise_error(Heddle::Testing::Deadlock, /all fibers wait.*\n.*waiting waits for Queue/m)
  end

  it "calls the fiber of the block the program in such an error" do
    expect do
      virtually do
        Queue.new.pop
      end
    end.to raise_error(Heddle::Testing::Deadlock, /^  the program waits for Queue#pop/)
  end

  it "makes schedules with sleeps certain" do
    orders = []
    Heddle::Testing.explore(runs: 20, clock: :virtual) do
      order = []
      Heddle.await_all(*[3, 1, 2].map { |time| Heddle.spin { sleep(time) && (order << time) } })
      orders << order
    end

    expect(orders.uniq).to eq([[1, 2, 3]])
  end

  it "is refused where the thread has a scheduler" do
    expect { virtually { virtually { nil } } }.to raise_error(RuntimeError, /this thread has a scheduler already/)
  end

  it "raises ArgumentError for another clock" do
    expect { Heddle::Testing.run(clock: :fast) { nil } }
      .to raise_error(ArgumentError, "Heddle::Testing.run: clock: must be :real or :virtual, not :fast")
  end

  it "raises ArgumentError for a negative idle:" do
    expect { virtually(idle: -1) { nil } }.to raise_error(ArgumentError, /idle: seconds must be finite and not/)
  end

  it "raises ArgumentError without a block" do
    expect { Heddle::Testing.run }.to raise_error(ArgumentError, "Heddle::Testing.run needs a block")
  end

  # As minitest, ActiveSupport and Timecop do it: the method is kept as an alias.
  def with_stub(time)
    type = Time.singleton_class
    type.alias_method(:kept_now, :now)
    type.alias_method(:now, :now) # without a warning
    type.define_method(:now) { time }
    yield
  ensure
    type.alias_method(:now, :kept_now)
    type.remove_method(:kept_now)
  end

  it "yields to a stub of Time.now within the run, and around it" do
    time = Time.at(1_000)
    stubbed = [virtually { with_stub(time) { sleep(60) && Time.now } }, with_stub(time) { virtually { Time.now } }]

    expect([*stubbed, Time.now == time]).to eq([time, time, false])
  end

  it "yields to a double of RSpec within the run" do
    time = Time.at(1_000)

    seen = virtually do
      allow(Time).to receive(:now).and_return(time)
      Time.now
    end

    expect(seen).to eq(time)
  end

  it "is what Ruby's method tells under another name, as Timecop keeps it" do
    passed = with_stub(nil) { virtually { Time.kept_now.then { |began| sleep(60) && (Time.kept_now - began) } } }

    expect(passed).to eq(60)
  end

  it "leaves a method that a stub of the run puts back later as it is without a run" do
    kept = virtually { Time.method(:now) }

    expect([Time.at(kept.call.to_i), Time.at(Time.now.to_i)]).to all(be_between(Time.now - 60, Time.now))
  end

  it "leaves no method of Ruby patched, nor one that a stub of an earlier run has put back" do
    virtually { allow(Time).to receive(:now).and_return(1) }
    RSpec::Mocks.space.proxy_for(Time).reset
    virtually { sleep(1) }

    methods = [Kernel.instance_method(:sleep), Queue.instance_method(:pop), Time.method(:now), Time.method(:new)]
    expect(methods.filter_map(&:source_location).map(&:first).grep(/clock_patches/)).to be_empty
  end

  it "is not loaded by require \"heddle/testing\"" do
    expect(printed('require "heddle/testing"; print Thread::Queue.ancestors.first')).to eq("Thread::Queue")
  end
end
