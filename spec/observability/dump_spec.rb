# frozen_string_literal: true

require "stringio"

RSpec.describe "Heddle.dump" do
  def dumped
    StringIO.new.tap { |io| Heddle.dump(io) }.string
  end

  it "writes to $stderr" do
    expect(captured_stderr { Heddle.dump }).to start_with("Process #{Process.pid} at ")
  end

  it "returns nil" do
    expect(Heddle.dump(StringIO.new)).to be_nil
  end

  it "writes by one call" do
    calls = []
    io = Class.new { define_method(:write) { |text| calls << text } }.new
    Heddle.run { Heddle.dump(io) }

    expect(calls.size).to eq(1)
  end

  it "counts schedulers and fibers" do
    output, errors, = run_ruby('require "heddle"; Heddle.run { Heddle.spin { nil } && Heddle.dump($stdout) }')

    expect([output.lines.first, errors]).to match [/Schedulers: 1\. Fibers: 3\.$/, ""]
  end

  it "has a line for each scheduler, with its thread" do
    text, expected = Heddle.run { [dumped, Fiber.scheduler.inspect[/\A\S+/]] }

    expect(text).to match(/^#{Regexp.escape(expected)} .* of #{Regexp.escape(Thread.current.inspect[/\A\S+/])}/)
  end

  it "puts children below their parents, indented" do
    text = Heddle.run do
      Heddle.annotate("parent")
      Heddle.spin(name: "child", background: true) { Heddle.spin(name: "grandchild") { sleep } && sleep }
      Heddle.spin(name: "second", background: true) { sleep }
      3.times { Heddle.snooze }
      dumped
    end

    expect(text.scan(/^( *)fiber \d+ "(\w+)"/))
      .to eq([["  ", "parent"], ["    ", "child"], ["      ", "grandchild"], ["    ", "second"]])
  end

  it "has the backtrace of each fiber" do
    line = __LINE__ + 1
    text = Heddle.run { Heddle.spin(background: true) { sleep }.then { Heddle.snooze || dumped } }

    expect(text).to match(/\(waiting, .*\): sleep\n +\S+dump_spec\.rb:#{line}:in .*sleep'\n/)
  end

  it "tells where the block is of a fiber that has not started" do
    line = __LINE__ + 1
    text = Heddle.run { Heddle.spin(background: true) { nil } && dumped }

    expect(text).to match(/\(runnable, .*\): its first time slice\n +\S+dump_spec\.rb:#{line}\n/)
  end

  it "can be called from another thread" do
    text = Heddle.run do
      Heddle.spin(name: "sleeper", background: true) { sleep } && sleep(0) && Thread.new { dumped }.value
    end

    expect(text).to match(/fiber \d+ "sleeper" \(waiting/)
  end

  it "can be called while a scheduler closes" do
    text = nil
    with_scheduler do |scheduler|
      Fiber.schedule do
        sleep a_moment
        text = dumped
      end
      scheduler.close
    end

    expect(text).to include("the end of the other fibers")
  end

  it "shows a chain of fibers that is deeper than Ruby's stack" do
    text = Heddle.run do
      begun = Queue.new
      chain = lambda do |count|
        Heddle.annotate("last") && begun.push(true) if count.zero?
        Heddle.spin(background: true) { chain.call(count - 1) } unless count.zero?
        sleep
      end
      Heddle.spin(background: true) { chain.call(3000) }
      begun.pop
      pass_until { Heddle.fibers.find { |info| info.name == "last" }.state == :waiting }
      dumped
    end

    expect(text).to match(/^ {40}fiber \d+ "last" \(waiting/)
  end

  it "raises what the io raises, and disturbs no fiber" do
    closed = StringIO.new.tap(&:close)
    value = virtually do
      fiber = Heddle.spin(background: true) { sleep(1) && :undisturbed }
      begin
        Heddle.dump(closed)
      rescue IOError
        Heddle.await(fiber)
      end
    end

    expect(value).to eq(:undisturbed)
  end

  it "refuses an io without a method write" do
    expect { Heddle.dump(42) }.to raise_error(TypeError, "Heddle.dump: 42 has no method write, as $stderr has")
  end

  describe "of fibers that nothing can wake" do
    cycle = /fiber \d+ "a" waits for fiber \d+ "b" waits for fiber \d+ "a"\./

    # Runs the program, in which all fibers wait for ever, and returns what another thread then dumps.
    def dump_of(program)
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Thread.new do
          Thread.pass until Heddle.fibers.any? && Heddle.fibers.all? { |fiber| fiber.state == :waiting }
          Heddle.dump($stdout)
          $stdout.flush
          exit!
        end
        Heddle.run { #{program} }
      RUBY
      expect(errors).to eq("")
      output
    end

    it "names the fibers that hold each other's Mutex" do
      text = dump_of(<<~RUBY)
        one, two = Mutex.new, Mutex.new
        Heddle.spin(name: "a", background: true) { one.synchronize { Heddle.snooze; two.lock } }
        Heddle.spin(name: "b", background: true) { two.synchronize { one.lock } }
        sleep
      RUBY

      expect(text).to match(/^  Deadlock: all 3 fibers wait, and nothing can wake one: .*\n  Cycle: #{cycle}$/)
    end

    it "names the fibers that await each other" do
      text = dump_of(<<~RUBY)
        one = two = nil
        one = Heddle.spin(name: "a") { Heddle.await(two) }
        two = Heddle.spin(name: "b") { Heddle.await(one) }
        sleep
      RUBY

      expect(text).to match(/^  Cycle: #{cycle}$/)
    end

    it "says so without a cycle" do
      text = dump_of("Queue.new.pop")

      expect([text[/^  Deadlock: all \d+ fibers/], text[/^  Cycle/]]).to eq(["  Deadlock: all 1 fibers", nil])
    end

    it "does not say so of fibers with a timer" do
      expect(dump_of("Queue.new.pop(timeout: 60)")).not_to include("Deadlock")
    end

    it "does not say so of fibers that wait for I/O" do
      expect(dump_of("IO.pipe { |reader, _| reader.read(1) }")).not_to include("Deadlock")
    end

    it "does not say so while another thread could wake one" do
      expect(dump_of("Thread.new { sleep 60 }; Queue.new.pop")).not_to include("Deadlock")
    end
  end
end
