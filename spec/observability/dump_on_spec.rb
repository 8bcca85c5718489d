# frozen_string_literal: true

RSpec.describe "Heddle.dump_on" do
  # What the program writes to stdout and stderr. Its method `dumped` returns when a dump has been written to the pipe
  # `$dumps`, and returns the dump.
  def run_with_dumps(program)
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $dumps = Queue.new
      io = Object.new
      io.define_singleton_method(:write) { |text| $dumps << text }
      # A signal does nothing until the last dump has ended.
      def until_no_dump_is_made = (sleep 0.001 while Thread.list.any? { |thread| thread.name == "Heddle.dump_on" })
      #{program}
    RUBY
    expect(status.success?).to be(true), errors
    [output, errors]
  end

  it "makes the signal write a dump" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on("PWR", io)
      Heddle.run do
        Process.kill("PWR", Process.pid)
        puts $dumps.pop
      end
    RUBY

    expect(output).to match(/\AProcess \d+ at .* Schedulers: 1\. Fibers: [12]\.$/)
  end

  it "makes the signal write a dump while a fiber computes" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on(:SIGPWR, io)
      Heddle.run do
        Heddle.annotate("hog")
        Process.kill("PWR", Process.pid)
        nil while $dumps.empty?
        puts $dumps.pop
      end
    RUBY

    expect(output).to match(/fiber \d+ "hog" \(running/)
  end

  it "reports the threads if C code keeps Ruby from dumping, and dumps later", if: File.exist?("/proc/self/task") do
    output, = run_with_dumps(<<~RUBY)
      require "tempfile"
      report = Tempfile.new
      $stderr.reopen(report)
      Heddle.dump_on("PWR", io)
      number = 1 << 12_000_000
      until File.size?(report.path)
        Process.wait(Process.spawn("(sleep \#{a_moment}; kill -PWR \#{Process.pid}) &"))
        number.to_s
        number <<= 12_000_000 # Until its conversion takes long enough.
      end
      puts File.read(report.path), $dumps.pop
    RUBY

    expect(output).to match(/\AHeddle\.dump_on: no dump has begun .*^  thread \d+ \(.*\): runs.*^Process \d+ at /m)
  end

  it "works in a forked child" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on("PWR", io)
      pid = fork do
        Process.kill("PWR", Process.pid)
        puts $dumps.pop[/Process \\d+/].sub(Process.pid.to_s, "child")
      end
      Process.wait(pid)
    RUBY

    expect(output).to eq("Process child\n")
  end

  it "works beside a scheduler that opens and closes on the main thread" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.run { Heddle.dump_on("USR1", io) }
      2.times do
        Heddle.run { Process.kill("USR1", Process.pid) && $dumps.pop }
        until_no_dump_is_made
      end
      Process.kill("USR1", Process.pid)
      puts $dumps.pop
    RUBY

    expect(output).to match(/Schedulers: 0\. Fibers: 0\.$/)
  end

  it "survives an io that raises" do
    output, errors = run_with_dumps(<<~RUBY)
      attempts = Queue.new
      io.define_singleton_method(:write) { |_| attempts << true && raise(IOError, "closed") }
      Heddle.dump_on("PWR", io)
      Heddle.run do
        2.times do
          Process.kill("PWR", Process.pid)
          attempts.pop
          until_no_dump_is_made
        end
        puts "undisturbed"
      end
    RUBY

    # On a busy machine a dump may begin late, which is reported.
    late = /^Heddle\.dump_on: no dump has begun .*\n(?:  thread .*\n)*/
    expect([output, errors.gsub(late, "")]).to eq(["undisturbed\n", ""])
  end

  it "replaces the previous signal, and restores its default" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on("USR1", io)
      Heddle.dump_on("USR2", io)
      puts trap("USR1", "IGNORE")
    RUBY

    expect(output).to eq("DEFAULT\n")
  end

  it "ends with nil" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on("USR1", io)
      Heddle.dump_on(nil)
      puts trap("USR1", "IGNORE")
    RUBY

    expect(output).to eq("DEFAULT\n")
  end

  it "leaves a handler that the program has set since" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.dump_on("USR1", io)
      trap("USR1") { puts "own" }
      Heddle.dump_on(nil)
      Process.kill("USR1", Process.pid)
    RUBY

    expect(output).to eq("own\n")
  end

  it "refuses a signal that the program handles" do
    output, = run_with_dumps(<<~RUBY)
      trap("USR1") { nil }
      Heddle.dump_on("USR1", io) rescue puts $!.class, $!.message
    RUBY

    expect(output).to match(/\AArgumentError\nHeddle\.dump_on: "USR1" has a handler already \(#<Proc.*\); take one/)
  end

  it "refuses a signal that a ticker uses" do
    output, = run_with_dumps(<<~RUBY)
      Heddle.run(ticker: :signal) do
        YieldingFiber.schedule { sleep a_moment }
        Heddle.dump_on("USR2", io) rescue puts $!.message
      end
    RUBY

    expect(output).to include("\"USR2\" has a handler already (that of a ticker)")
  end

  { "KILL" => "is reserved", "SEGV" => "is reserved", "EXIT" => "is reserved", 9 => "is reserved",
    "FOO" => "is no signal of this system", 4711 => "is no signal of this system" }.each do |signal, reason|
    it "refuses the signal #{signal.inspect}" do
      expect { Heddle.dump_on(signal) }
        .to raise_error(ArgumentError, /\AHeddle\.dump_on: #{signal.inspect} #{reason}; take one/)
    end
  end

  it "refuses what is no signal" do
    expect { Heddle.dump_on(1.5) }.to raise_error(TypeError, /a String, a Symbol or an Integer, not 1\.5/)
  end

  it "refuses an io without a method write" do
    expect { Heddle.dump_on("PWR", 42) }.to raise_error(TypeError, /42 has no method write/)
  end
end
