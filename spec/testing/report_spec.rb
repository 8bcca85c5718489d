# frozen_string_literal: true

require "heddle/testing"
require "json"
require "shellwords"
require "stringio"
require "tmpdir"

RSpec.describe "The report of Heddle::Testing" do
  include ExploredBank

  # Runs a program in a process of its own, since an RSpec that is under way has threads and files of its own.
  def report(program)
    printed(<<~RUBY)
      require "heddle/testing"
      begin
        Heddle::Testing.explore(steps: 2_000) do
          #{program}
        end
      rescue Heddle::Testing::Failure => e
        print e.message
      end
    RUBY
  end

  it "tells the lost update line by line" do
    expect(failure.message.gsub(%r{spec/support/|spec/testing/}, "").gsub(/ +/, " ")).to include(<<~TEXT)
      explored_bank.rb:12 balance = @balance
       -- preempted before line 13
    TEXT
  end

  it "names the fibers" do
    expect(failure.message).to match(/^  A  .*^  B  .*^  A  /m)
  end

  it "says which line ran while a fiber was preempted" do
    expect(failure.message).to match(/^  B .*@balance = balance - amount.*^  A .*@balance = balance - amount/m)
  end

  it "has at most ten lines of schedule for the bank" do
    expect(failure.message.lines.grep(/explored_bank\.rb|preempted/).size).to be <= 10
  end

  it "has the command that replays the run" do
    expect(failure.message).to match(/^Replay: HEDDLE_SEED=#{failure.seed} ruby /)
  end

  it "has a command with the schedule where there is no seed" do
    expect(failure(strategy: :exhaustive).message).to match(/^Replay: HEDDLE_SCHEDULE='[\d.>,]+' ruby /)
  end

  it "has the fewest switches that still fail" do
    expect((1..20).map { |seed| failure(seed:)&.switches }.compact.uniq).to eq([1])
  end

  it "replaces two switches by one where that still fails" do
    failing = %w[abbaab]
    program = lambda do
      steps = []
      Heddle.await_all(*%w[a b].map { |name| Heddle.spin { 3.times { steps << name } } })
      raise "out of order" if failing.include?(steps.join)
    end
    found = failure(program, strategy: :exhaustive)
    failing << "aabbba"

    expect([found, failure(program, schedule: found.schedule)].map(&:switches)).to eq([2, 1])
  end

  it "shows which fiber is chosen where others wait, and what it does" do
    program = lambda do
      queue = Queue.new
      values = []
      takers = %w[A B].map { |name| Heddle.spin(name:) { values << [name, queue.pop] } }
      queue << 1 << 2
      Heddle.await_all(*takers)
      raise "wrong order" if values.first != ["A", 1]
    end

    chosen = failure(program, strategy: :exhaustive, preemptions: 0)
    expect(chosen.message).to match(/ -- B is chosen to run next\n  B  .* values << \[name, queue.pop\]/)
  end

  it "tells an error whose message raises an error" do
    error = Class.new(StandardError) { define_method(:message) { raise KeyError } }

    expect(failure(-> { raise error }).message).to match(/\A\(an error whose message raises KeyError\).*^Replay: /m)
  end

  it "has Ruby's options in the command that replays the run" do
    command = report("raise 'always'")[/^Replay: (.*)/m, 1].shellsplit

    expect(command).to include("HEDDLE_SEED=0", "ruby", "-I", "-e").and include(/raise 'always'/)
  end

  it "compares classes of errors by name, which the program makes for each run" do
    program = lambda do
      type = Class.new(StandardError)
      account = ExploredBank::Account.new(100)
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin(name:) { account.withdraw(10) } })
      raise type, "lost" unless account.balance == 80
    end

    expect(failure(program).message)
      .to match(/\Alost \(a StandardError of a class without a name\)\nseed \d+, run \d+; one switch is enough:/)
  end

  it "tells the error that was found, and no other one of its class" do
    program = lambda do
      first = nil
      Heddle.await_all(*%w[A B].map { |name| Heddle.spin { first ||= name } })
      raise first == "A" ? "usual" : "unusual"
    end

    expect((1..20).map { |seed| failure(program, seed:).cause.message }).to include("unusual")
  end

  it "says that the usual schedule fails" do
    expect(report("raise 'always'")).to include("always (RuntimeError)\nseed 0, run 1; the usual schedule fails")
  end

  it "replaces the invalid bytes of messages and of names" do
    program = lambda do
      Heddle.await(Heddle.spin(name: "caf\xE9".b) { raise "no such key: th\xE9" })
    end

    expect(failure(program).message).to match(/\Ano such key: th\uFFFD \(RuntimeError\).*^  caf\uFFFD .*^Replay: /m)
  end

  it "replaces the invalid bytes of what a deadlocked fiber waits for" do
    program = -> { Heddle.waiting_for("caf\xE9".b) { Queue.new.pop } }

    expect(failure(program).message).to include("the program waits for caf\uFFFD at ")
  end

  it "tells an error whose message is nil" do
    error = Class.new(StandardError) { define_method(:message) { nil } }

    expect(failure(-> { raise error }).message).to match(/the usual schedule fails.*^Replay: /m)
  end

  it "tells that the virtual clock has jumped over a wait for I/O" do
    program = lambda do
      reader, writer = IO.pipe
      reader.timeout = 60
      reader.read
    ensure
      [reader, writer].each(&:close)
    end

    expect(failure(program, clock: :virtual, idle: 0.001).message)
      .to match(/the usual schedule fails.*^The virtual clock has jumped once by 60\.0 s while a fiber waited/m)
  end

  it "replays by its seed what fails after such a jump" do
    program = lambda do
      reader, writer = IO.pipe
      reader.wait_readable(60)
      [reader, writer].each(&:close)
      ExploredBank::WITHDRAWALS.call
    end
    found = failure(program, clock: :virtual, idle: 0.001)

    expect(failure(program, clock: :virtual, idle: 0.001, seed: found.seed).message)
      .to match(/one switch is enough.*The virtual clock has jumped once/m)
  end

  it "tells a Monitor from a Mutex in a deadlock" do
    text = report(<<~RUBY)
      monitor, lock = Monitor.new, Mutex.new
      Heddle.spin(name: "first") { monitor.synchronize { Heddle.snooze; lock.synchronize { nil } } }
      Heddle.spin(name: "second") { lock.synchronize { Heddle.snooze; monitor.synchronize { nil } } }
    RUBY

    expect(text).to match(/^  first waits for Mutex held .*\n  second waits for Monitor held /)
  end

  it "names the fibers of a deadlock, and what they wait for" do
    text = report(<<~RUBY)
      one, two = Mutex.new, Mutex.new
      first = Heddle.spin(name: "first", background: true) do
        one.synchronize do
          two.synchronize { nil }
        end
      end
      second = Heddle.spin(name: "second", background: true) do
        two.synchronize do
          one.synchronize { nil }
        end
      end
      Heddle.await_all(first, second)
    RUBY

    expect(text).to match(/^Deadlock: all fibers wait.*^  first waits for Mutex.* at -e:\d+\n  second waits for Mutex/m)
  end

  it "ends a run that waits for an empty Queue" do
    expect(report("Queue.new.pop")).to match(/the program waits for Queue#pop at -e:4/)
  end

  it "names the fiber and the line of a program that never ends" do
    text = report(<<~RUBY)
      fiber = Heddle.spin(name: "endless", background: true) do
        loop do
          nil
        end
      end
      Heddle.await(fiber)
    RUBY

    expect(text).to match(/has passed 2000 points without an end, at last in endless at -e:\d: raise steps:/)
  end

  {
    "rescues every exception" => "loop { begin; loop { nil }; rescue Exception; end }",
    "rescues every exception, in several lines" => <<~RUBY,
      while true
        begin
          loop { nil }
        rescue Exception
          nil
        end
      end
    RUBY
    "continues in an ensure clause" => "while true; begin; loop { nil }; ensure; next; end; end",
    "rescues every exception in a generator" => <<~RUBY
      loop do
        Enumerator.new { loop { nil } }.next
      rescue Exception
        nil
      end
    RUBY
  }.each do |name, program|
    it "ends a program that never ends and #{name}" do
      expect(report(program)).to match(/\Athe program has passed 2000 points without an end/)
    end
  end

  it "ends a fiber that never ends and rescues every exception, and tells no other error" do
    text = report(<<~RUBY)
      fiber = Heddle.spin(name: "endless", background: true) { loop { begin; loop { nil }; rescue Exception; end } }
      Heddle.await(fiber)
    RUBY

    expect(text).to match(/\Athe program has passed 2000 points without an end, at last in endless at -e:4:/)
  end

  it "says where a program starts a thread" do
    expect(report("Thread.new { nil }.join")).to match(/the program starts a thread at -e:4\. What threads do/)
  end

  it "says where two runs of one schedule differ" do
    text = report(<<~RUBY)
      ($runs ||= []) << 1
      if $runs.size.odd?
        raise "odd" if $runs.size > 2
      end
    RUBY

    expect(text).to match(/The same schedule does not give the same run again: the program at -e:\d in one run/)
  end

  it "is written as a trace with a track for each fiber" do
    trace = StringIO.new
    failure.write_trace(trace)
    events = JSON.parse(trace.string).fetch("traceEvents")

    expect(events.select { |event| event["name"] == "thread_name" }.map { |event| event.dig("args", "name") })
      .to contain_exactly("the program", "A", "B")
  end

  it "shows preemptions in the trace" do
    trace = StringIO.new
    failure.write_trace(trace)

    expect(JSON.parse(trace.string).fetch("traceEvents").count { |event| event["name"] == "preempted" }).to eq(1)
  end

  it "says that the file of trace: cannot be written" do
    Dir.mktmpdir do |folder|
      message = failure(trace: File.join(folder, "missing", "trace.json")).message

      expect(message).to match(/^Replay: .*^trace: the trace is not written: No such file or directory.*ENOENT/m)
    end
  end

  it "is of the first run where the file of keep: has the schedule" do
    Dir.mktmpdir do |folder|
      keep = File.join(folder, "kept")
      found = failure(keep:)

      expect([File.read(keep), failure(keep:).message]).to match(["#{found.schedule}\n", /^run 1; one switch/])
    end
  end

  it "is added to a file of keep: that was edited, and ends without a newline or has an empty line" do
    Dir.mktmpdir do |folder|
      File.write(keep = File.join(folder, "kept"), "\n0.1>1")
      found = failure(keep:)

      expect(File.read(keep)).to eq("\n0.1>1\n#{found.schedule}\n")
    end
  end

  it "says that the file of keep: cannot be written" do
    expect(failure(keep: "/missing/kept").message).to match(/keep: the schedule is not kept: No such file .*ENOENT/)
  end

  it "is written to the file of trace:" do
    Dir.mktmpdir do |folder|
      failure(trace: File.join(folder, "trace.json"))

      expect(JSON.parse(File.read(File.join(folder, "trace.json")))).to include("traceEvents")
    end
  end
end
