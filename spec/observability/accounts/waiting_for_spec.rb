# frozen_string_literal: true

require "objspace"

RSpec.describe "Heddle.waiting_for" do
  # Returns what `Heddle.fibers` tells about a fiber that waits in the block.
  def info_of(**options, &block)
    Heddle.run(**options) do
      fiber = Fiber.schedule(&block)
      Heddle.fibers.find { |info| info.fiber.equal?(fiber) }.tap { fiber.kill }
    end
  end

  it "names the wait of the fiber" do
    info = info_of { Heddle.waiting_for("a permit") { sleep } }

    expect(info.waiting_for).to eq "a permit"
  end

  it "adds the details, which it asks for only when they are needed" do
    asked = 0
    info = info_of { Heddle.waiting_for("a permit", detail: -> { "#{asked += 1} of 1 in use" }) { sleep } }

    expect(info.waiting_for).to eq "a permit (1 of 1 in use)"
  end

  it "leaves out details that cannot be had" do
    raising = info_of { Heddle.waiting_for("a permit", detail: -> { raise "changing" }) { sleep } }
    unfinished = info_of { Heddle.waiting_for("a permit", detail: -> { raise NotImplementedError }) { sleep } }
    missing = info_of { Heddle.waiting_for("a permit", detail: -> {}) { sleep } }

    expect([raising, unfinished, missing].map(&:waiting_for)).to eq ["a permit"] * 3
  end

  { "invalid bytes" => ["caf\xE9", "caf\uFFFD"], "another encoding" => ["café".encode(Encoding::UTF_16LE), "café"],
    "an encoding that Ruby cannot convert" => ["caf".dup.force_encoding(Encoding::UTF_7), "caf"],
    "control characters" => ["a\n\e[1m", "a\\n\\e[1m"],
    "a long text" => ["x" * 1_000, "#{"x" * 500}…"] }.each do |kind, (said, shown)|
    it "is valid UTF-8 on one line, and not too long: #{kind}" do
      expect(info_of { Heddle.waiting_for(said) { sleep } }.waiting_for).to eq shown
    end
  end

  it "still tells for which IO the fiber waits" do
    reader, _writer = IO.pipe
    info = info_of { Heddle.waiting_for("the answer of the cache") { reader.wait_readable } }

    expect(info.waiting_for).to match(/\Athe answer of the cache \(reading descriptor \d+ \(pipe\)\)\z/)
  end

  it "holds for its block only, and restores what was said before" do
    texts = Heddle.run do
      fiber = Fiber.schedule do
        Heddle.waiting_for("outer") do
          Heddle.waiting_for("inner") { sleep }
        rescue RuntimeError
          sleep
        end
      rescue RuntimeError
        sleep
      end
      waits = -> { Heddle.fibers.find { |info| info.fiber.equal?(fiber) }.waiting_for }
      [waits.call, fiber.raise("out").then { waits.call }, fiber.raise("out").then { waits.call }].tap { fiber.kill }
    end

    expect(texts).to eq %w[inner outer sleep]
  end

  it "returns the block's value, also without a scheduler" do
    expect(Heddle.waiting_for(:something) { 7 }).to eq 7
  end

  it "adds up the time that is waited" do
    waited = Heddle.run(stats: :detailed) do
      Heddle.waiting_for("a permit") { sleep a_moment }
      sleep a_moment
      Heddle.waiting_for("a permit") { sleep a_moment }
      Heddle.fibers.find { |info| info.fiber.equal?(Fiber.current) }.times.waited
    end

    expect(waited.keys).to contain_exactly("a permit", :sleep)
    expect(waited["a permit"]).to be_positive
  end

  it "counts waits for too many different things by their kind" do
    waited = Heddle.run(stats: :detailed) do
      40.times { |index| Heddle.waiting_for("thing#{index}x") { sleep a_moment } }
      Heddle.fibers.find { |info| info.fiber.equal?(Fiber.current) }.times.waited
    end

    expect(waited.keys.grep(String).size).to eq 15
    expect(waited).to include(:sleep)
  end

  it "refuses an empty text, a text that is none, details that cannot be called, and no block" do
    expect { Heddle.waiting_for("") { nil } }.to raise_error(ArgumentError, /must say what the fiber waits for, not ""/)
    expect { Heddle.waiting_for(nil) { nil } }.to raise_error(ArgumentError, /not nil/)
    expect { Heddle.waiting_for("x", detail: 7) { nil } }.to raise_error(TypeError, /must have a method call.*not be 7/)
    expect { Heddle.waiting_for("x") }.to raise_error(ArgumentError, "Heddle.waiting_for needs a block")
  end

  describe "Heddle::FiberInfo#waiting_for" do
    it "tells where the holder of a Mutex is" do
      mutex = Mutex.new
      texts = Heddle.run do
        holder = Heddle.spin(name: "GET /x", background: true) { mutex.synchronize { sleep } }
        sleep 0
        waiting = Fiber.schedule { mutex.lock }
        Heddle.fibers.find { |info| info.fiber.equal?(waiting) }.waiting_for.tap { [waiting, holder].each(&:kill) }
      end

      expect(texts).to match(%r{\AMutex held by fiber \d+ "GET /x" at #{Regexp.escape(__FILE__)}:\d+\z})
    end

    it "tells a Monitor from a Mutex, and its holder" do
      monitor = Monitor.new
      texts = Heddle.run do
        holder = Heddle.spin(name: "GET /x", background: true) { monitor.synchronize { sleep } }
        sleep 0
        waiting = Fiber.schedule { monitor.enter }
        Heddle.fibers.find { |info| info.fiber.equal?(waiting) }.waiting_for.tap { [waiting, holder].each(&:kill) }
      end

      expect(texts).to match(%r{\AMonitor held by fiber \d+ "GET /x" at #{Regexp.escape(__FILE__)}:\d+\z})
    end

    it "tells that a worker thread does the work" do
      info = info_of { Heddle.const_get(:BlockingWork).in_thread(-> { sleep }, 1) }

      expect(info.waiting_for).to eq "a worker thread"
    end

    it "tells how full a SizedQueue is" do
      queue = SizedQueue.new(2)
      info = info_of { 3.times { queue << 1 } }

      expect(info.waiting_for).to match(/\ASizedQueue#(<<|push)( on one made at .*)? \(2 of 2\)\z/)
    end

    it "tells how many wait for a Queue if there are several" do
      queue = Queue.new
      texts = Heddle.run do
        fibers = Array.new(2) { Fiber.schedule { queue.pop } }
        Heddle.fibers.filter_map { |info| info.waiting_for if fibers.include?(info.fiber) }.tap { fibers.each(&:kill) }
      end

      expect(texts).to match [/\AQueue#pop.* \(2 wait\)\z/] * 2
    end

    describe "of a Queue, while times are counted," do
      let(:preamble) do
        <<~RUBY
          require "heddle"
          def told
            Heddle.run(stats: :detailed) do
              fiber = Fiber.schedule { yield }
              Heddle.fibers.find { |info| info.fiber == fiber }.waiting_for.tap { fiber.kill }
            end
          end
        RUBY
      end

      it "tells where it was made" do
        expect(printed("puts told { Queue.new.pop }")).to match(/\AQueue#pop on one made at -e:\d+\n\z/)
      end

      it "tells the name of the fiber that made it" do
        expect(printed(<<~RUBY)).to match(%r{#(<<|push) on one made at -e:\d+ \(by "GET /orders"; 1 of 1\)\n\z})
          puts(told { Heddle.annotate("GET /orders") { SizedQueue.new(1) }.then { |queue| 2.times { queue << 1 } } })
        RUBY
      end

      it "makes what it made before, of a subclass and with values, too" do
        made = printed(<<~RUBY)
          class Jobs < Queue; def initialize = super([1, 2]); end
          told { sleep }
          jobs = Jobs.new
          p [[jobs.pop, jobs.pop], SizedQueue.new(3).max, Queue.new.size, jobs.class]
          puts((Queue.new(7) rescue $!.class), (SizedQueue.new rescue $!.message))
        RUBY

        expect(made).to eq "[[1, 2], 3, 0, Jobs]\nTypeError\nwrong number of arguments (given 0, expected 1)\n"
      end

      it "lets a Ractor make one" do
        output, = run_ruby(<<~RUBY)
          #{preamble}
          told { sleep }
          ractor = Ractor.new { Queue.new.tap { |queue| queue << 1 }.pop }
          puts ractor.respond_to?(:value) ? ractor.value : ractor.take
        RUBY

        expect(output).to eq "1\n"
      end

      it "tells nothing of one that was made before" do
        expect(printed("queue = Queue.new; puts told { queue.pop }")).to eq "Queue#pop\n"
      end
    end
  end

  describe "a pool of connections" do
    include Libraries

    def told_by(program, library:, before: nil, text: /pool/i)
      printed(<<~RUBY, library:)
        #{before}
        #{program}
        Heddle.run do
          holder = Heddle.spin(name: "GET /orders", background: true) { take.call { sleep } }
          sleep 0.001 until holding.call
          waiting = Array.new(2) { Heddle.spin(background: true) { take.call { sleep } } }
          told = -> { Heddle.fibers.filter_map { |info| info.waiting_for if waiting.include?(info.fiber) } }
          sleep 0.001 until told.call.grep(#{text.inspect}).size == 2
          puts told.call
          [holder, *waiting].each(&:kill)
        end
      RUBY
    end

    let(:active_record) { <<~RUBY }
      require "active_record"
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:", pool: 1, checkout_timeout: 60)
      pool = ActiveRecord::Base.connection_pool
      take = ->(&block) { pool.with_connection(&block) }
      holding = -> { pool.connections.any?(&:in_use?) }
    RUBY
    let(:connection_pool) { <<~RUBY }
      pool = ConnectionPool.new(size: 1, timeout: 60) { Object.new }
      take = ->(&block) { pool.with(&block) }
      holding = -> { pool.available.zero? }
    RUBY

    it "of ActiveRecord tells how many are in use, and by which fibers" do
      told = told_by(active_record, library: "sqlite3")

      expect(told.lines.size).to eq 2
      expect(told.lines).to all start_with("a connection of ActiveRecord's pool (1 of 1 in use, by GET /orders), ")
    end

    it "of the gem connection_pool tells how many are in use" do
      told = told_by(connection_pool, library: "connection_pool")

      expect(told.lines.size).to eq 2
      expect(told.lines).to all match(/\Aa connection of a ConnectionPool \(1 of 1 in use\), .* s left$/)
    end
  end

  it "counts for the outer text after the inner one, in a child that was forked within the inner one" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
    output, errors = run_ruby(<<~RUBY)
      require "heddle"
      Heddle.run(stats: :detailed) do
        Heddle.waiting_for("the outer one") do
          child = Heddle.waiting_for("the inner one") { fork.tap { sleep(a_moment) } }
          sleep(a_moment)
          next Process.wait(child) if child
          puts Heddle.fibers.flat_map { |info| info.times.waited.keys }.grep(String)
        end
      end
    RUBY

    expect([output, errors]).to eq ["the outer one\n", ""]
  end
end
