# frozen_string_literal: true

RSpec.describe "Options of preemption" do
  def scheduler(**)
    Heddle::Scheduler.new(**)
  end

  # Preempts a yielding fiber, and returns the ticker's name and whether there have been preemptions.
  def preempted_with(**options)
    Heddle.run(**options) do
      preempt_a_fiber
      [Fiber.scheduler.ticker, Fiber.scheduler.stats[:run_queue][:preemptions_count].positive?]
    end
  end

  [:some, "all", true, false, 1, []].each do |preempt|
    it "refuse preempt: #{preempt.inspect}, and name the accepted values" do
      expect { scheduler(preempt:) }
        .to raise_error(ArgumentError, /preempt.*:yielding.*:all.*:none.*#{Regexp.escape(preempt.inspect)}/)
    end
  end

  [0.01, 0.0001, 1, 1r / 100, 60].each do |quantum|
    it "preempt for a sleeper with quantum: #{quantum.inspect}" do
      slept = nil
      Heddle.run(quantum:) do
        Fiber.schedule { slept = sleep(a_moment) }
        YieldingFiber.schedule { nil until slept }
      end
      expect(slept).to be_an(Integer)
    end
  end

  [0, -1, -0.01, 0.0, Float::NAN, Float::INFINITY, "x", "0.01", :fast, [], 1e-9, 61, 10**400, 1i].each do |quantum|
    it "refuse quantum: #{quantum.inspect[0, 20]}, and name the accepted values" do
      expect { scheduler(quantum:) }.to raise_error(ArgumentError, /quantum.*seconds.*60/)
    end
  end

  it "accept a tick as long as the quantum" do
    expect(preempted_with(quantum: 0.02, tick: 0.02)).to match [Symbol, true]
  end

  it "refuse a tick longer than the quantum, and say how long it may be" do
    expect { scheduler(quantum: 0.01, tick: 0.02) }.to raise_error(ArgumentError, /tick.*0\.01.*0\.02/)
  end

  [0, -1, Float::NAN, "x", 1].each do |tick|
    it "refuse tick: #{tick.inspect}, and name the accepted values" do
      expect { scheduler(tick:) }.to raise_error(ArgumentError, /tick.*seconds.*#{Regexp.escape(tick.inspect)}/)
    end
  end

  { auto: :timerfd, signal: :signal, timerfd: :timerfd }.each do |ticker, name|
    it "use the ticker #{name.inspect} with ticker: #{ticker.inspect}" do
      expect(preempted_with(ticker:)).to eq [name, true]
    end
  end

  [:x, "signal", 1, true].each do |ticker|
    it "refuse ticker: #{ticker.inspect}, and name the accepted values" do
      expect { scheduler(ticker:) }
        .to raise_error(ArgumentError, /ticker.*:auto.*:signal.*:timerfd.*#{Regexp.escape(ticker.inspect)}/)
    end
  end

  ["USR2", "SIGUSR2", :USR2, :SIGUSR1, "PROF", Signal.list.fetch("ALRM")].each do |signal|
    it "preempt by signal: #{signal.inspect}" do
      expect(preempted_with(ticker: :signal, signal:)).to eq [:signal, true]
    end
  end

  ["NOPE", "", "usr2", 99, -1, 1.5, [], Object, 10**20].each do |signal|
    it "refuse signal: #{signal.inspect}, which does not exist, and name the accepted values" do
      expect { scheduler(signal:) }
        .to raise_error(ArgumentError, /signal.*#{Regexp.escape(signal.inspect)}.*no signal.*USR2/)
    end
  end

  reserved = %w[KILL STOP SEGV BUS ILL FPE VTALRM INT TERM HUP QUIT CHLD ABRT SIGINT SIGKILL EXIT] + [0, 9]
  reserved.each do |signal|
    it "refuse signal: #{signal.inspect}, which is reserved, and name the accepted values" do
      expect { scheduler(signal:) }
        .to raise_error(ArgumentError, /signal.*#{Regexp.escape(signal.inspect)}.*reserved.*USR2/)
    end
  end

  it "stand for their defaults when they are nil" do
    made = scheduler(preempt: nil, quantum: nil, tick: nil, ticker: nil, signal: nil)
    expect([made.ticker, made.stats[:run_queue][:preemptions_count]]).to eq [nil, 0]
  end

  it "leave a signal's action to the system until a fiber is to be preempted", if: File.exist?("/proc/self/status") do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      def caught? = File.read("/proc/self/status")[/^SigCgt:\\s*(\\h+)/, 1].hex[Signal.list["PROF"] - 1]

      options = { ticker: :signal, signal: "PROF" }
      Heddle::Scheduler.new(**options)
      p caught?
      Heddle.run(**options) do
        Fiber.schedule { sleep(a_moment) }
        p caught?
        YieldingFiber.schedule { p caught? }
      end
    RUBY
    expect([output, errors]).to eq ["0\n0\n1\n", ""]
  end

  it "leave Ruby's own table of traps as it was" do
    name = "USR2"
    Heddle.run(ticker: :signal, preempt: :all, signal: name) { expect(Fiber.scheduler.ticker).to eq :signal }
    previous = trap(name, "DEFAULT")
    expect(previous).to eq "DEFAULT"
  ensure
    trap(name, previous) if previous
  end

  it "leave no scheduler behind when Heddle.run refuses them" do
    expect { Heddle.run(quantum: 0) { nil } }.to raise_error(ArgumentError, /quantum/)
    expect(Fiber.scheduler).to be_nil
  end
end
