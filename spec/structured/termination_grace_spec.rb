# frozen_string_literal: true

RSpec.describe "A termination that the fiber ignores beyond its grace" do
  let(:grace) { 5 }
  # Of the real clock: where another thread ends the fibers, or time has to pass while a fiber runs.
  let(:short) { 0.1 }

  it "does not keep Heddle.run from returning" do
    value = nil
    captured_stderr do
      value = virtually(grace:) do
        Heddle.spin(background: true) { swallow { sleep } }
        Heddle.snooze
        :returned
      end
    end

    expect(value).to eq(:returned)
  end

  it "does not keep the scheduler from being closed" do
    captured_stderr do
      with_scheduler(grace: short) do |scheduler|
        Heddle.stop(Fiber.schedule { swallow { sleep } })
        scheduler.close
        expect(Fiber.scheduler).to be_nil
      end
    end
  end

  it "does not keep a killed thread from ending" do
    thread = Thread.new { Heddle.run(grace: short) { swallow { sleep } } }
    until_asleep(thread)
    captured_stderr { thread.kill.join }

    expect(thread).not_to be_alive
  end

  it "does not keep a killed thread from ending if the fiber begins during the kill" do
    thread = Thread.new do
      Heddle.run(grace: short) do
        sleep
      ensure
        Fiber.schedule { swallow { sleep } }
      end
    end
    until_asleep(thread)
    captured_stderr { thread.kill.join }

    expect(thread).not_to be_alive
  end

  it "kills a fiber that reads from a socket meanwhile, and leaves its parent alone" do
    ends = UNIXSocket.pair
    value = nil
    captured_stderr do
      value = Heddle.run(grace: short) do
        reader = Heddle.spin(background: true) do
          sleep
        ensure
          swallow { ends.first.read(1) }
        end
        Heddle.snooze
        reader.stop.await
        :goes_on
      end
    end

    expect(value).to eq(:goes_on)
  ensure
    ends&.each(&:close)
  end

  it "is reported in one line, with the fiber's block and its current place" do
    line = nil
    text = captured_stderr do
      run_and_terminate(grace: short) do
        line = __LINE__ + 1
        swallow { sleep }
      end
    end
    place = "#{__FILE__}:#{line}:in"

    told = "has not ended #{short} s after it was stopped, and is killed."
    expect(text.lines).to match([a_string_including("#<Fiber:0x", "#{__FILE__}:#{line - 2} (suspended)>", told, place)])
  end

  it "makes Heddle.await return nil" do
    values = nil
    captured_stderr do
      values = virtually(grace:) do
        fiber = Heddle.spin { swallow { sleep } }
        Heddle.snooze
        Heddle.stop(fiber)
        [Heddle.await_all(fiber), Heddle.stop(fiber).equal?(fiber)]
      end
    end

    expect(values).to eq([[nil], true])
  end

  it "runs the fiber's ensure, and unlocks its Mutex" do
    events = []
    mutex = Mutex.new
    captured_stderr do
      run_and_terminate(grace:, virtual: true) do
        mutex.synchronize { swallow { sleep } }
      ensure
        events << :ensured
      end
    end

    expect([events, mutex.locked?]).to eq([[:ensured], false])
  end

  it "leaves a Queue usable for later pops" do
    queue = Queue.new
    captured_stderr { run_and_terminate(grace:, virtual: true) { swallow { queue.pop } } }
    GC.start
    queue << :first << :second

    expect([queue.pop, queue.pop]).to eq(%i[first second])
  end

  it "leaves a pipe usable for later reads" do
    reader, writer = IO.pipe
    captured_stderr { run_and_terminate(grace: short) { swallow { reader.read(5) } } }
    GC.start
    writer << "hello"

    expect(reader.read(5)).to eq("hello")
  ensure
    [reader, writer].each { |io| io&.close }
  end

  it "ends the fiber's children" do
    ended = false
    captured_stderr do
      run_and_terminate(grace:, virtual: true) do
        Heddle.spin do
          sleep
        ensure
          ended = true
        end
        swallow { sleep }
      end
    end

    expect(ended).to be(true)
  end

  {
    "in an ensure" => lambda {
      begin
        sleep
      ensure
        sleep
      end
    },
    "in a rescue of Exception" => lambda {
      begin
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        sleep
      end
    },
    "with next in an ensure, again and again" => lambda {
      loop do
        sleep
      ensure
        next
      end
    },
    "in a generator" => lambda {
      Enumerator.new do
        loop do
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          nil
        end
      end.next
    }
  }.each do |name, block|
    it "does not keep Heddle.run from returning if the fiber stays #{name}" do
      text = captured_stderr { run_and_terminate(grace:, virtual: true, &block) }

      expect(text.lines.size).to eq(1)
    end
  end

  it "does not keep Heddle.run from returning if the fiber yields, again and again" do
    text = captured_stderr { run_and_terminate(grace: short) { swallow { sleep(0) } } }

    expect(text.lines.size).to eq(1)
  end

  it "ends a thousand fibers at the same time" do
    ended = nil
    text = captured_stderr do
      virtually(grace: short) do
        began = Clock.now
        fibers = Array.new(1000) { Heddle.spin { swallow { sleep } } }
        Heddle.snooze
        fibers.each { |fiber| Heddle.stop(fiber) }
        Heddle.await_all(*fibers)
        ended = Clock.now - began
      end
    end

    # Of virtual time. One after the other, they would take a thousand times the grace.
    expect([text.lines.size, ended]).to match([1000, be < 10 * short])
  end

  it "survives a $stderr that raises" do
    before = $stderr
    begin
      $stderr = Class.new { def write(*) = raise(IOError, "no stderr") }.new
      value = run_and_terminate(grace:, virtual: true) { swallow { sleep } }
    ensure
      $stderr = before
    end

    expect(value).to be_nil
  end

  it "does not wait for a $stderr that is never read" do
    reader, writer = IO.pipe
    before = $stderr
    writer.write_nonblock("x" * (1 << 20))
    ended = false
    begin
      $stderr = writer
      Heddle.run(grace: short) do
        fiber = Heddle.spin { swallow { sleep } }
        Heddle.snooze
        Heddle.stop(fiber)
        Heddle.await(fiber)
        ended = true
        # There must be room for the line now.
        reader.read_nonblock(1 << 20)
      end
    ensure
      $stderr = before
    end

    expect(ended).to be(true)
  ensure
    [reader, writer].each { |io| io&.close }
  end

  it "lets the process end as usual", timeout: 60 do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      queue = Queue.new
      mutex = Mutex.new
      reader, writer = IO.pipe
      begun = []
      Heddle.run(grace: 0.05, preempt: :all) do
        waits = [-> { sleep }, -> { queue.pop }, -> { reader.read(1) }, -> { loop { Integer.sqrt(2) } },
                 -> { begin; sleep; ensure; mutex.lock; end }]
        waits.each do |wait|
          Heddle.spin(background: true) do
            loop { begin; begun << wait; wait.call; rescue Exception; end }
          end
        end
        mutex.lock
        sleep 0.001 until begun.uniq.size == waits.size
      end
      10.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
      queue << 1
      at_exit { puts "ended" }
    RUBY

    expect([output, errors.lines.size, status.success?]).to eq(["ended\n", 5, true])
  end
end
