# frozen_string_literal: true

# Ruby says of it: 'To perform Thread.current.raise as Kernel.raise' (thread.c).
RSpec.describe "Thread.current.raise" do
  def raised
    yield
  rescue Exception => e # rubocop:disable Lint/RescueException -- it is what is compared
    [e.class, e.message]
  end

  {
    "no arguments" => [],
    "a message" => ["message"],
    "a class" => [ArgumentError],
    "a class and a message" => [ArgumentError, "message"],
    "an exception" => [ArgumentError.new("message")],
    "no StandardError" => [SignalException, "TERM"],
    "what is no exception" => [3]
  }.each do |description, arguments|
    it "raises in the fiber that calls it, as in a thread: #{description}", :regression do
      in_thread = Thread.new { raised { Thread.current.raise(*arguments) } }.value
      in_fiber = nil
      Heddle.run { Fiber.schedule { in_fiber = raised { Thread.current.raise(*arguments) } } }
      expect(in_fiber).to eq in_thread
    end
  end

  # Their class takes keywords, as an error with a code may.
  coded = Class.new(StandardError) { def initialize(options = {}) = super("code #{options[:code]}") }
  {
    "keywords" => [coded, { code: 5 }],
    "keywords that its class does not take" => [IOError, "message", { code: 5 }]
  }.each do |description, (*arguments, keywords)|
    it "raises in the fiber that calls it, as in a thread: #{description}" do
      in_thread = Thread.new { raised { Thread.current.raise(*arguments, **keywords) } }.value
      in_fiber = nil
      Heddle.run { Fiber.schedule { in_fiber = raised { Thread.current.raise(*arguments, **keywords) } } }
      expect(in_fiber).to eq in_thread
    end
  end

  # What a masked raise does, where the block runs.
  def masked
    log = []
    raised do
      Thread.handle_interrupt(ArgumentError => :never) do
        Thread.current.raise(ArgumentError, "masked")
        log << :after
        yield
        log << :end
      end
    end => [error, message]
    [log, error, message]
  end

  { "that doesn't wait" => -> {}, "that waits" => -> { sleep(a_moment) } }.each do |description, work|
    it "raises at the end of a mask #{description}, in the fiber that called it", :regression do
      in_thread = Thread.new { masked(&work) }.value
      in_fiber = nil
      Heddle.run { Fiber.schedule { in_fiber = masked(&work) } }
      expect(in_fiber).to eq in_thread
    end
  end

  it "lets other fibers run on", :regression do
    ended = []
    virtually do
      Fiber.schedule { sleep(1) && (ended << :other) }
      Fiber.schedule { raised { Thread.current.raise("error") } && (ended << :raised) }
    end
    expect(ended).to eq %i[raised other]
  end

  # Ruby searches its list where a fiber ends such a block: in vain for what another fiber has raised.
  def search_in_another_fiber
    searched = false
    Heddle.spin { Thread.handle_interrupt(EOFError => :immediate) { searched = true } }
    Heddle.snooze until searched
  end

  # At the end of a mask Ruby raises one of several.
  it "raises in the computing fiber that called it what a mask has held back besides" do
    raised_last = Heddle.run(preempt: :all) do
      raising = Heddle.spin do
        Thread.handle_interrupt(KeyError => :never) { %w[one two].each { |own| Thread.current.raise(KeyError, own) } }
      rescue KeyError
        raised do
          search_in_another_fiber
          loop { nil }
        end
      end
      Heddle.await(raising)
    end
    expect(raised_last).to eq [KeyError, "two"]
  end

  it "raises in the computing fiber that called it what no mask holds back, besides what one still does" do
    outcomes = Heddle.run(preempt: :all) do
      raising = Heddle.spin do
        inner = nil
        masked = raised do
          Thread.handle_interrupt(IOError => :never) do
            Thread.current.raise(IOError, "masked")
            Thread.handle_interrupt(KeyError => :never) { %w[1 2].each { |own| Thread.current.raise(KeyError, own) } }
          rescue KeyError
            inner = raised do
              search_in_another_fiber
              loop { nil }
            end
          end
        end
        [inner, masked]
      end
      Heddle.await(raising)
    end
    expect(outcomes).to eq [[KeyError, "2"], [IOError, "masked"]]
  end

  it "raises nothing that a mask has left in a critical section" do
    has_ended = false
    outcome = Heddle.run(preempt: :all) do
      Heddle.spin do
        raised do
          leave_one
          Heddle.without_preemption do
            compute_for(0.1) # ticks come meanwhile
            has_ended = true
          end
          loop { nil }
        end
      end.await
    end
    expect([has_ended, outcome]).to eq [true, [KeyError, "two"]]
  end

  # Ruby raises the first at the end of the mask, and the second where the thread next waits.
  def leave_one
    Thread.handle_interrupt(KeyError => :never) { %w[one two].each { |own| Thread.current.raise(KeyError, own) } }
  rescue KeyError
    :left
  end

  { "wait" => -> { sleep(a_moment) }, "`sleep 0`" => -> { sleep 0 } }.each do |name, wait|
    it "raises what a mask has left in the next #{name} of the fiber that called it, as in a thread" do
      waits = -> { raised { leave_one && wait.call } }
      in_thread = Thread.new(&waits).value
      expect(Heddle.run { Heddle.spin(&waits).await }).to eq in_thread
    end
  end

  it "raises what a block of Heddle.run has left in the fiber's next wait, as in a thread" do
    in_thread = Thread.new { raised { leave_one && sleep(a_moment) } }.value
    in_fiber = Heddle.run { Heddle.spin { raised { Heddle.run { leave_one } && sleep(a_moment) } }.await }
    expect(in_fiber).to eq in_thread
  end

  { "returns" => -> { :ended }, "raises" => -> { raise IOError, "its own" } }.each do |description, ends|
    it "raises nothing after the end of a block that #{description} under its thread's mask, as in a thread" do
      block = lambda do
        sleep 0
        Thread.current.raise(KeyError, "masked")
        ends.call
      end
      ending = Thread.new do
        Thread.current.report_on_exception = false
        Thread.handle_interrupt(KeyError => :never) do
          thread = Thread.new(&block).tap { |quiet| quiet.report_on_exception = false }
          [raised { thread.value }, raised { Heddle.run { Heddle.spin(&block).await } },
           raised { Heddle.run { Heddle.await(Fiber.schedule(&block)) } }]
        end
      end
      outcomes = ending.value
      expect(outcomes).to all eq outcomes.first
    end
  end

  it "raises nothing after the end of a fiber that no fiber awaits, as in a thread" do
    outcome = raised { Heddle.run { Fiber.schedule { leave_one } && :ended } }
    expect(outcome).to eq :ended
  end

  # Ruby searches its list again where such a block begins.
  it "raises nothing in what Heddle does at the end of a fiber" do
    searches = 0
    search = TracePoint.new(:call) do |point|
      next unless point.path.include?("/lib/heddle/structured/")

      searches += 1
      Thread.handle_interrupt(IOError => :immediate) { nil }
    end
    expect(search.enable { Heddle.run { Heddle.spin { leave_one }.await } }).to eq :left
    expect(searches).to be_positive
  end

  it "raises in a wait what is masked but there, as in a thread" do
    waits = lambda do
      Thread.handle_interrupt(KeyError => :on_blocking) { Thread.current.raise(KeyError, "own") || Queue.new.pop }
    end
    in_thread = Thread.new { raised(&waits) }.value
    expect(Heddle.run { Heddle.spin { raised(&waits) }.await }).to eq in_thread
  end

  # A thread has them so, too: they belong to it, and not to its generators.
  {
    "in the fiber's next wait what a generator has left" => lambda do
      Enumerator.new { |yielder| yielder << leave_one }.next
      sleep(a_moment)
    end,
    "in a generator's wait what the fiber has left" => lambda do
      leave_one
      Enumerator.new { |yielder| yielder << Queue.new.pop }.next
    end
  }.each do |description, waits|
    it "raises #{description}, as in a thread" do
      in_thread = Thread.new { raised { instance_exec(&waits) } }.value
      in_fiber = Heddle.run { Heddle.spin { raised { instance_exec(&waits) } }.await }
      expect(in_fiber).to eq in_thread
    end
  end

  it "raises nothing after the end of a fiber whose generator has left something" do
    outcome = raised do
      Heddle.run do
        Fiber.schedule { Enumerator.new { |yielder| yielder << leave_one }.next }
        Thread.handle_interrupt(IOError => :immediate) { :ended }
      end
    end
    expect(outcome).to eq :ended
  end

  {
    "at once" => -> { Thread.current.raise(KeyError, "own") },
    "at the end of a mask" =>
      -> { Thread.handle_interrupt(KeyError => :never) { Thread.current.raise(KeyError, "own") } }
  }.each do |description, raises|
    it "raises #{description}, while another fiber masks an exception of the same class" do
      gate = Queue.new
      outcomes = Heddle.run do
        masks = lambda do
          Thread.handle_interrupt(KeyError => :never) { Thread.current.raise(KeyError, "masked") || gate.pop }
        end
        masking = Heddle.spin { raised(&masks) }
        Heddle.snooze
        own = raised { raises.call && :not_raised }
        gate.push(true)
        [own, Heddle.await(masking)]
      end
      expect(outcomes).to eq [[KeyError, "own"], [KeyError, "masked"]]
    end
  end

  it "raises in the fiber that calls it, while another fiber lets its own of the same class through" do
    gate = Queue.new
    outcome_of = lambda do |own, &wait|
      Thread.handle_interrupt(KeyError => :never) do
        Thread.current.raise(KeyError, own)
        wait&.call
        raised { Thread.handle_interrupt(KeyError => :immediate) { :not_raised } }
      end
    end
    outcomes = Heddle.run do
      masking = Heddle.spin { outcome_of.call("masked") { gate.pop } }
      Heddle.snooze
      own = outcome_of.call("own")
      gate.push(true)
      [own, Heddle.await(masking)]
    end
    expect(outcomes).to eq [[KeyError, "own"], [KeyError, "masked"]]
  end

  it "raises in the fiber that calls it, whatever others raise before Ruby does" do
    waiting = false
    error = Class.new(StandardError) do
      define_method(:exception) do |*|
        sleep(0) if waiting
        self
      end
    end
    outcomes = Heddle.run do
      own = error.new("own")
      raising = Heddle.spin do
        raised { (waiting = true) && Thread.current.raise(own) }
      ensure
        waiting = false
      end
      others = []
      until others.any? && !waiting
        others |= [raised { Thread.current.raise("other") }]
        sleep 0
      end
      others << Heddle.await(raising)
    end
    expect(outcomes).to eq [[RuntimeError, "other"], [error, "own"]]
  end

  # Ruby checks interrupts before it raises, and again when it has asked where it may. A fiber that is preempted there
  # gets no exception, and another fiber may.
  {
    "at once" => -> { Thread.current.raise(ArgumentError, "own") },
    "at the end of a mask" =>
      -> { Thread.handle_interrupt(ArgumentError => :never) { Thread.current.raise(ArgumentError, "own") } }
  }.each do |description, raises|
    it "raises #{description} in the fiber that calls it, wherever that is preempted", timeout: 120 do
      outcomes = Heddle.run(preempt: :all, tick: 0.0001, quantum: 0.0001) do
        3.times { Heddle.spin(background: true) { loop { nil } } }
        Array.new(5000) { raised { raises.call && :not_raised } }
      end
      expect(outcomes.tally).to eq([ArgumentError, "own"] => 5000)
    end
  end
end
